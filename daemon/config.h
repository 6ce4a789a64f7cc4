/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, file, flags, checks, and how it prints. */
#ifndef CM_CONFIG_H
#define CM_CONFIG_H

#include "endpoint.h"
#include "message.h"

#include <stdio.h>

#define CM_CONFIG_FILE "/etc/ciphermill/ciphermilld.conf"
#define CM_CONFIG_LISTEN "unix:/run/ciphermill/ciphermill.sock"
#define CM_CONFIG_STATE "/var/lib/ciphermill"

enum { CM_CONFIG_SOCKET_MODE = 0660, CM_CONFIG_TEXT = 512 };

/* Strings belong to the configuration. */
struct cm_config {
    struct cm_listen *listen;
    size_t listen_count;
    char *metrics;    /* HOST:PORT, or NULL: none */
    char *state;      /* folder of the key store */
    char *master_key; /* file; NULL: the store's default in the state folder */
    uint32_t workers; /* 0: as many as there are processors to run on */
    bool pin_workers;
    int log_level;           /* enum cm_log_level */
    struct cm_limits limits; /* announced in the greeting */
    uint64_t inflight_bytes; /* of all connections together */
    uint32_t connections, connections_per_peer;
    uint32_t greeting_timeout_ms, stall_timeout_ms, operation_timeout_ms, drain_timeout_ms;
};

/* The defaults, without a listener. 0 or -1 (no memory). */
int cm_config_init(struct cm_config *config);
void cm_config_done(struct cm_config *config);

/* Reads a file on top of what is there; its listeners replace those. On failure prints one line to stderr,
 * with file and line where there is one, and returns -1. */
int cm_config_read(struct cm_config *config, const char *path);

/* Adds a listener with default settings. 0, or -1 with a text. */
int cm_config_add_listen(struct cm_config *config, const char *uri, char *ret_text, size_t text_capacity);
void cm_config_clear_listen(struct cm_config *config);
/* Replaces a string of the configuration by a copy. 0, or -1 (no memory). */
int cm_config_set_string(char **string, const char *value);
/* Sets a number by its name in the file ("workers", "drain-timeout"). 0, or -1 with a text. */
int cm_config_set_number(struct cm_config *config, const char *name, const char *value, char *ret_text,
                         size_t text_capacity);

/* Fills in what is still open (the default listener) and checks what only all values together tell. */
int cm_config_complete(struct cm_config *config, char *ret_text, size_t text_capacity);

/* In the file's own syntax; reading it again gives the same configuration. */
void cm_config_print(const struct cm_config *config, FILE *out);

#endif
