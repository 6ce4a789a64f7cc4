/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, file, checks. */
#include "config.h"

#include "config_numbers.h"
#include "log.h"

#include <confuse.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) (snprintf(ret_text, text_capacity, __VA_ARGS__), -1)

enum { TOP_OPTIONS = 16, LIMIT_OPTIONS = 16, FILE_BYTES_MAX = 1 << 20 };

/* Put behind the file's last line. libconfuse takes a file that ends inside a section; there this word is
 * unknown. */
#define END_WORD "end-of-configuration"

int cm_config_set_string(char **string, const char *value)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return -1;
    free(*string);
    *string = copy;
    return 0;
}

int cm_config_init(struct cm_config *config)
{
    *config = (struct cm_config){.log_level = CM_LOG_INFO};
    for (size_t i = 0; i < cm_number_count; i++)
        cm_number_set(&cm_numbers[i], config, cm_numbers[i].standard);
    return cm_config_set_string(&config->state, CM_CONFIG_STATE);
}

void cm_config_clear_listen(struct cm_config *config)
{
    for (size_t i = 0; i < config->listen_count; i++) {
        free(config->listen[i].uri);
        free(config->listen[i].group);
    }
    free(config->listen);
    config->listen = NULL;
    config->listen_count = 0;
}

void cm_config_done(struct cm_config *config)
{
    cm_config_clear_listen(config);
    free(config->metrics);
    free(config->state);
    free(config->master_key);
    *config = (struct cm_config){0};
}

int cm_config_add_listen(struct cm_config *config, const char *uri, char *ret_text, size_t text_capacity)
{
    struct cm_endpoint endpoint;
    if (cm_endpoint_parse(uri, &endpoint, ret_text, text_capacity) != 0)
        return -1;
    for (size_t i = 0; i < config->listen_count; i++)
        if (strcmp(config->listen[i].uri, uri) == 0)
            return FAIL("%s: listed twice", uri);
    struct cm_listen *grown = realloc(config->listen, (config->listen_count + 1) * sizeof *grown);
    if (grown == NULL)
        return FAIL("no memory");
    config->listen = grown;
    struct cm_listen *added = &grown[config->listen_count];
    *added = (struct cm_listen){.mode = CM_CONFIG_SOCKET_MODE, .admin = strcmp(endpoint.scheme, "unix") == 0};
    if (cm_config_set_string(&added->uri, uri) != 0)
        return FAIL("no memory");
    config->listen_count++;
    return 0;
}

int cm_config_set_number(struct cm_config *config, const char *name, const char *value, char *ret_text,
                         size_t text_capacity)
{
    uint64_t parsed;
    const struct cm_number *number = cm_number_find(NULL, name);
    if (number == NULL)
        return FAIL("%s: no such number", name);
    if (cm_number_parse(number, value, &parsed, ret_text, text_capacity) != 0)
        return -1;
    cm_number_set(number, config, parsed);
    return 0;
}

/* --- Reading ----------------------------------------------------------------------------------------------
 */

__attribute__((format(printf, 2, 0))) static void on_error(cfg_t *cfg, const char *format, va_list arguments)
{
    char text[CM_CONFIG_TEXT];
    (void)vsnprintf(text, sizeof text, format, arguments);
    if (strstr(text, END_WORD) != NULL)
        snprintf(text, sizeof text, "the file ends inside a section");
    if (cfg != NULL && cfg->filename != NULL && cfg->line > 0)
        fprintf(stderr, "ciphermilld: %s:%d: %s\n", cfg->filename, cfg->line, text);
    else
        fprintf(stderr, "ciphermilld: %s\n", text);
}

static int check_number(cfg_t *cfg, cfg_opt_t *option)
{
    char text[CM_CONFIG_TEXT];
    uint64_t value;
    const char *section = strcmp(cfg_name(cfg), "root") == 0 ? NULL : cfg_name(cfg);
    const struct cm_number *number = cm_number_find(section, cfg_opt_name(option));
    if (cm_number_parse(number, cfg_opt_getnstr(option, 0), &value, text, sizeof text) == 0)
        return 0;
    cfg_error(cfg, "%s", text);
    return -1;
}

static int parse_mode(const char *text, uint32_t *ret_mode)
{
    char *end = NULL;
    unsigned long mode = strtoul(text, &end, 8);
    if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777)
        return -1;
    *ret_mode = (uint32_t)mode;
    return 0;
}

static int check_mode(cfg_t *cfg, cfg_opt_t *option)
{
    uint32_t mode;
    if (parse_mode(cfg_opt_getnstr(option, 0), &mode) == 0)
        return 0;
    cfg_error(cfg, "mode = %s: expected octal permissions such as \"0660\"", cfg_opt_getnstr(option, 0));
    return -1;
}

static int check_log_level(cfg_t *cfg, cfg_opt_t *option)
{
    if (cm_log_level_find(cfg_opt_getnstr(option, 0)) >= 0)
        return 0;
    cfg_error(cfg, "log-level = %s: expected error, warning, info or debug", cfg_opt_getnstr(option, 0));
    return -1;
}

static int check_metrics(cfg_t *cfg, cfg_opt_t *option)
{
    char text[CM_CONFIG_TEXT];
    struct cm_endpoint endpoint;
    if (cm_endpoint_parse_host(cfg_opt_getnstr(option, 0), &endpoint, text, sizeof text) == 0)
        return 0;
    cfg_error(cfg, "metrics: %s", text);
    return -1;
}

static int check_listen(cfg_t *cfg, cfg_opt_t *option)
{
    char text[CM_CONFIG_TEXT];
    struct cm_endpoint endpoint;
    cfg_t *section = cfg_opt_getnsec(option, cfg_opt_size(option) - 1);
    if (cm_endpoint_parse(cfg_title(section), &endpoint, text, sizeof text) != 0) {
        cfg_error(cfg, "listen: %s", text);
        return -1;
    }
    bool is_unix = strcmp(endpoint.scheme, "unix") == 0;
    if (!is_unix && (cfg_size(section, "group") > 0 || cfg_size(section, "mode") > 0 ||
                     (cfg_size(section, "admin") > 0 && cfg_getbool(section, "admin")))) {
        cfg_error(cfg, "listen \"%s\": group, mode and admin are for unix: only", cfg_title(section));
        return -1;
    }
    return 0;
}

static int take_listen(struct cm_config *config, cfg_t *file)
{
    char text[CM_CONFIG_TEXT];
    if (cfg_size(file, "listen") > 0)
        cm_config_clear_listen(config);
    for (unsigned i = 0; i < cfg_size(file, "listen"); i++) {
        cfg_t *section = cfg_getnsec(file, "listen", i);
        if (cm_config_add_listen(config, cfg_title(section), text, sizeof text) != 0) {
            cfg_error(file, "listen: %s", text);
            return -1;
        }
        struct cm_listen *added = &config->listen[config->listen_count - 1];
        if (cfg_size(section, "group") > 0 &&
            cm_config_set_string(&added->group, cfg_getstr(section, "group")) != 0)
            return -1;
        if (cfg_size(section, "mode") > 0)
            (void)parse_mode(cfg_getstr(section, "mode"), &added->mode);
        if (cfg_size(section, "admin") > 0)
            added->admin = cfg_getbool(section, "admin");
    }
    return 0;
}

static int take_string(cfg_t *section, const char *name, char **string)
{
    return cfg_size(section, name) > 0 ? cm_config_set_string(string, cfg_getstr(section, name)) : 0;
}

/* A section that may be missing; asking libconfuse for one that is would report an error. */
static cfg_t *find_section(cfg_t *file, const char *name)
{
    return cfg_size(file, name) > 0 ? cfg_getsec(file, name) : NULL;
}

static int take_all(struct cm_config *config, cfg_t *file)
{
    char text[CM_CONFIG_TEXT];
    cfg_t *limits = find_section(file, "limits");
    for (size_t i = 0; i < cm_number_count; i++) {
        uint64_t value;
        cfg_t *section = cm_numbers[i].section == NULL ? file : limits;
        if (section == NULL || cfg_size(section, cm_numbers[i].name) == 0)
            continue;
        if (cm_number_parse(&cm_numbers[i], cfg_getstr(section, cm_numbers[i].name), &value, text,
                            sizeof text) != 0)
            return -1;
        cm_number_set(&cm_numbers[i], config, value);
    }
    if (cfg_size(file, "pin-workers") > 0)
        config->pin_workers = cfg_getbool(file, "pin-workers");
    if (cfg_size(file, "log-level") > 0)
        config->log_level = cm_log_level_find(cfg_getstr(file, "log-level"));
    cfg_t *store = find_section(file, "store");
    if (take_string(file, "metrics", &config->metrics) != 0 ||
        take_string(file, "state", &config->state) != 0 ||
        (store != NULL && take_string(store, "master-key", &config->master_key) != 0))
        return -1;
    return take_listen(config, file);
}

/* The table's numbers of one section, behind the options that stand there already. */
static void add_numbers(cfg_opt_t *options, size_t count, const char *section)
{
    for (size_t i = 0; i < cm_number_count; i++) {
        if ((cm_numbers[i].section == NULL) != (section == NULL))
            continue;
        cfg_opt_t option = CFG_STR(cm_numbers[i].name, NULL, CFGF_NODEFAULT);
        option.validcb = check_number;
        options[count++] = option;
    }
    options[count] = (cfg_opt_t)CFG_END();
}

/* The whole file with END_WORD behind it, as a stream; NULL with errno. */
static FILE *open_copy(const char *path, char **ret_copy)
{
    size_t length = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    char *copy = malloc(FILE_BYTES_MAX + sizeof END_WORD + 16);
    if (copy != NULL) {
        length = fread(copy, 1, FILE_BYTES_MAX, file);
        if (ferror(file) || length == FILE_BYTES_MAX) {
            errno = ferror(file) ? errno : EFBIG;
            free(copy);
            copy = NULL;
        }
    }
    int error = errno;
    (void)fclose(file); /* only read */
    errno = error;
    if (copy == NULL)
        return NULL;
    length += (size_t)sprintf(copy + length, "\n" END_WORD " = true\n");
    *ret_copy = copy;
    return fmemopen(copy, length, "r");
}

static int parse(struct cm_config *config, cfg_t *file, const char *path)
{
    char *copy = NULL;
    FILE *stream = open_copy(path, &copy);
    int rc = -1;
    if (stream == NULL) {
        fprintf(stderr, "ciphermilld: %s: %s\n", path, strerror(errno));
        free(copy);
        return -1;
    }
    file->filename = strdup(path); /* cfg_free frees it */
    if (cfg_parse_fp(file, stream) != CFG_SUCCESS)
        rc = -1; /* on_error has said it */
    else if (cfg_size(file, END_WORD) == 0)
        cfg_error(file, "the file ends inside a comment");
    else
        rc = take_all(config, file);
    (void)fclose(stream);
    free(copy);
    return rc;
}

int cm_config_read(struct cm_config *config, const char *path)
{
    cfg_opt_t listen_options[] = {CFG_STR("group", NULL, CFGF_NODEFAULT),
                                  CFG_STR("mode", NULL, CFGF_NODEFAULT),
                                  CFG_BOOL("admin", cfg_false, CFGF_NODEFAULT), CFG_END()};
    cfg_opt_t store_options[] = {CFG_STR("master-key", NULL, CFGF_NODEFAULT), CFG_END()};
    cfg_opt_t limit_options[LIMIT_OPTIONS];
    add_numbers(limit_options, 0, "limits");
    cfg_opt_t options[TOP_OPTIONS] = {
        CFG_SEC("listen", listen_options, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
        CFG_SEC("store", store_options, CFGF_NODEFAULT),
        CFG_SEC("limits", limit_options, CFGF_NODEFAULT),
        CFG_STR("metrics", NULL, CFGF_NODEFAULT),
        CFG_STR("state", NULL, CFGF_NODEFAULT),
        CFG_STR("log-level", NULL, CFGF_NODEFAULT),
        CFG_BOOL("pin-workers", cfg_false, CFGF_NODEFAULT),
        CFG_BOOL(END_WORD, cfg_false, CFGF_NODEFAULT),
    };
    add_numbers(options, 8, NULL);

    cfg_t *file = cfg_init(options, CFGF_NONE);
    if (file == NULL) {
        fprintf(stderr, "ciphermilld: no memory\n");
        return -1;
    }
    cfg_set_error_function(file, on_error);
    cfg_set_validate_func(file, "listen", check_listen);
    cfg_set_validate_func(file, "listen|mode", check_mode);
    cfg_set_validate_func(file, "metrics", check_metrics);
    cfg_set_validate_func(file, "log-level", check_log_level);
    int rc = parse(config, file, path);
    cfg_free(file);
    return rc;
}

/* --- Checking --------------------------------------------------------------------------------
 */

int cm_config_complete(struct cm_config *config, char *ret_text, size_t text_capacity)
{
    const struct cm_limits *limits = &config->limits;
    if (config->listen_count == 0 &&
        cm_config_add_listen(config, CM_CONFIG_LISTEN, ret_text, text_capacity) != 0)
        return -1;
    /* A frame carries its longest item with one block of padding, behind the longest header. */
    if ((uint64_t)limits->item_bytes + 16 + cm_frame_body_offset(limits->header_bytes) > limits->frame_bytes)
        return FAIL("limits: item = %u does not fit frame = %u with its header: raise frame or lower item",
                    limits->item_bytes, limits->frame_bytes);
    if (limits->inflight_bytes < limits->frame_bytes)
        return FAIL("limits: inflight-per-connection must be at least frame");
    /* One frame of the total is the reserve that lets a waiting connection complete. */
    if (config->inflight_bytes < 2 * (uint64_t)limits->frame_bytes)
        return FAIL("limits: inflight must be at least twice frame");
    return 0;
}
