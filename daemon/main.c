/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermilld: reads flags and configuration, then runs the server. */
#include "cm_aes.h"
#include "config.h"
#include "log.h"
#include "modes.h"
#include "server.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: ciphermilld [OPTION ...]\n"
    "Encrypts and decrypts with AES for other programs; they reach it over a Unix socket or loopback TCP.\n"
    "\n"
    "  --listen URI            unix:/path, tcp://127.0.0.1:PORT or tcp://[::1]:PORT; may be repeated\n"
    "                          (default " CM_CONFIG_LISTEN ")\n"
    "  --metrics HOST:PORT     /metrics, /healthz and /readyz over HTTP, on loopback (default: none)\n"
    "  --state DIR             folder of the key store (default " CM_CONFIG_STATE ")\n"
    "  --master-key FILE       key that wraps the stored keys (default: master.key in the state folder)\n"
    "  --workers N             threads that serve requests (default: one for each processor)\n"
    "  --drain-timeout TIME    how long to wait for clients at the end, such as 500ms (default 10s)\n"
    "  --log-level LEVEL       error, warning, info or debug (default info)\n"
    "  --config FILE           configuration (default " CM_CONFIG_FILE ", if it exists);\n"
    "                          flags override what it says\n"
    "  --check-config          check flags and configuration, then exit\n"
    "  --print-config          print what is in force in the configuration's own syntax, timeouts and\n"
    "                          limits included, then exit\n"
    "  --version, --help\n"
    "\n"
    "Environment: CIPHERMILL_CPU names an implementation (such as portable): it and narrower ones are used.\n"
    "Signals: SIGTERM and SIGINT drain, a second one ends at once.\n"
    "Exit status: 0 ended as asked; 1 could not start or go on; 2 wrong flags or configuration.\n";

enum {
    FLAG_LISTEN = 1,
    FLAG_METRICS,
    FLAG_STATE,
    FLAG_MASTER_KEY,
    FLAG_WORKERS,
    FLAG_DRAIN_TIMEOUT,
    FLAG_LOG_LEVEL,
    FLAG_CONFIG,
    FLAG_CHECK,
    FLAG_PRINT,
    FLAG_VERSION,
    FLAG_HELP
};

static const struct option flags[] = {
    {"listen", required_argument, NULL, FLAG_LISTEN},
    {"metrics", required_argument, NULL, FLAG_METRICS},
    {"state", required_argument, NULL, FLAG_STATE},
    {"master-key", required_argument, NULL, FLAG_MASTER_KEY},
    {"workers", required_argument, NULL, FLAG_WORKERS},
    {"drain-timeout", required_argument, NULL, FLAG_DRAIN_TIMEOUT},
    {"log-level", required_argument, NULL, FLAG_LOG_LEVEL},
    {"config", required_argument, NULL, FLAG_CONFIG},
    {"check-config", no_argument, NULL, FLAG_CHECK},
    {"print-config", no_argument, NULL, FLAG_PRINT},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

struct wishes {
    const char *config_file;
    bool check, print, version, help;
};

/* The flags that say what to do rather than how; they decide which file is read before the others override
 * it. */
static int read_wishes(int argc, char **argv, struct wishes *ret_wishes)
{
    int flag;
    optind = 1;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        switch (flag) {
        case FLAG_CONFIG:
            ret_wishes->config_file = optarg;
            break;
        case FLAG_CHECK:
            ret_wishes->check = true;
            break;
        case FLAG_PRINT:
            ret_wishes->print = true;
            break;
        case FLAG_VERSION:
            ret_wishes->version = true;
            break;
        case FLAG_HELP:
            ret_wishes->help = true;
            break;
        case '?':
            return -1; /* getopt has said it */
        default:
            break;
        }
    }
    if (optind == argc)
        return 0;
    fprintf(stderr, "ciphermilld: unexpected argument '%s'\n", argv[optind]);
    return -1;
}

static int apply_flag(struct cm_config *config, int flag, const char *value, bool *listened, char *ret_text,
                      size_t text_capacity)
{
    struct cm_endpoint endpoint;
    switch (flag) {
    case FLAG_LISTEN:
        if (!*listened)
            cm_config_clear_listen(config);
        *listened = true;
        return cm_config_add_listen(config, value, ret_text, text_capacity);
    case FLAG_METRICS:
        if (cm_endpoint_parse_host(value, &endpoint, ret_text, text_capacity) != 0)
            return -1;
        return cm_config_set_string(&config->metrics, value);
    case FLAG_STATE:
        return cm_config_set_string(&config->state, value);
    case FLAG_MASTER_KEY:
        return cm_config_set_string(&config->master_key, value);
    case FLAG_WORKERS:
        return cm_config_set_number(config, "workers", value, ret_text, text_capacity);
    case FLAG_DRAIN_TIMEOUT:
        return cm_config_set_number(config, "drain-timeout", value, ret_text, text_capacity);
    case FLAG_LOG_LEVEL:
        config->log_level = cm_log_level_find(value);
        if (config->log_level >= 0)
            return 0;
        snprintf(ret_text, text_capacity, "%s: expected error, warning, info or debug", value);
        return -1;
    default:
        return 0;
    }
}

static int apply_flags(struct cm_config *config, int argc, char **argv)
{
    int flag, index = 0;
    bool listened = false;
    optind = 1;
    while ((flag = getopt_long(argc, argv, "", flags, &index)) != -1) {
        char text[CM_CONFIG_TEXT] = "no memory";
        if (apply_flag(config, flag, optarg, &listened, text, sizeof text) != 0) {
            fprintf(stderr, "ciphermilld: --%s: %s\n", flags[index].name, text);
            return -1;
        }
    }
    return 0;
}

static int read_config(struct cm_config *config, const struct wishes *wishes, int argc, char **argv)
{
    char text[CM_CONFIG_TEXT];
    const char *file = wishes->config_file;
    if (file == NULL && access(CM_CONFIG_FILE, F_OK) == 0)
        file = CM_CONFIG_FILE;
    if (cm_config_init(config) != 0 || (file != NULL && cm_config_read(config, file) != 0) ||
        apply_flags(config, argc, argv) != 0)
        return -1;
    if (cm_config_complete(config, text, sizeof text) != 0) {
        fprintf(stderr, "ciphermilld: %s%s%s\n", file != NULL ? file : "", file != NULL ? ": " : "", text);
        return -1;
    }
    return 0;
}

/* An implementation that fails its self-test is not used. That costs speed in silence, and says that the
 * processor or the build is at fault: the log has it. */
static void log_failed_tests(void)
{
    static const char failed[] = "self-test failed";
    struct cm_aes_implementation row;
    for (enum cm_aes_mode mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (enum cm_aes_direction direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (size_t i = 0; cm_aes_implementation(i, mode, direction, &row); i++)
                if (strncmp(row.reason, failed, sizeof failed - 1) == 0)
                    cm_log(CM_LOG_ERROR, "implementation %s is not used to %s in %s: %s", row.name,
                           cm_direction_word(cm_direction_to_wire(direction)),
                           cm_mode_word(cm_mode_to_wire(mode)), row.reason);
}

static bool implementation_exists(const char *name)
{
    struct cm_aes_implementation row;
    for (size_t i = 0; cm_aes_implementation(i, CM_AES_ECB, CM_AES_ENCRYPT, &row); i++)
        if (strcmp(row.name, name) == 0)
            return true;
    return false;
}

static int run(const struct cm_config *config)
{
    const char *limit = getenv("CIPHERMILL_CPU");
    cm_log_init((enum cm_log_level)config->log_level);
    int rc = cm_aes_init(limit);
    if (rc != CM_AES_OK && limit != NULL && limit[0] != '\0' && !implementation_exists(limit)) {
        cm_log(CM_LOG_ERROR, "CIPHERMILL_CPU=%s: there is no such implementation", limit);
        return CM_EXIT_USAGE;
    }
    log_failed_tests();
    if (rc != CM_AES_OK) {
        cm_log(CM_LOG_ERROR,
               "no implementation passes its self-test: the processor or the build is at fault");
        return CM_EXIT_FAILURE;
    }
    return cm_server_run(config);
}

int main(int argc, char **argv)
{
    struct wishes wishes = {0};
    struct cm_config config = {0};
    int status = CM_EXIT_OK;
    if (read_wishes(argc, argv, &wishes) != 0) {
        fprintf(stderr, "Try 'ciphermilld --help'.\n");
        return CM_EXIT_USAGE;
    }
    if (wishes.help) {
        printf("%s", usage);
    } else if (wishes.version) {
        printf("ciphermilld %s\n", CM_VERSION);
    } else if (read_config(&config, &wishes, argc, argv) != 0) {
        status = CM_EXIT_USAGE;
    } else if (wishes.print) {
        cm_config_print(&config, stdout);
    } else if (!wishes.check) {
        status = run(&config);
    }
    cm_config_done(&config);
    return fflush(stdout) == 0 ? status : CM_EXIT_FAILURE;
}
