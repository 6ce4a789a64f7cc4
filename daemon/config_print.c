/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as its own file would have it. */
#include "config_numbers.h"
#include "log.h"

#include <string.h>

static void print_quoted(FILE *out, const char *value)
{
    fprintf(out, "\"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\' || *value == '$')
            fprintf(out, "\\");
        fprintf(out, "%c", *value);
    }
    fprintf(out, "\"");
}

static void print_string(FILE *out, const char *indent, const char *name, const char *value)
{
    fprintf(out, "%s%s = ", indent, name);
    print_quoted(out, value);
    fprintf(out, "\n");
}

static void print_numbers(const struct cm_config *config, FILE *out, const char *indent, const char *section)
{
    char text[32];
    for (size_t i = 0; i < cm_number_count; i++) {
        if ((cm_numbers[i].section == NULL) != (section == NULL))
            continue;
        cm_number_print(&cm_numbers[i], cm_number_get(&cm_numbers[i], config), text, sizeof text);
        fprintf(out, "%s%s = %s\n", indent, cm_numbers[i].name, text);
    }
}

void cm_config_print(const struct cm_config *config, FILE *out)
{
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct cm_listen *listen = &config->listen[i];
        fprintf(out, "listen ");
        print_quoted(out, listen->uri);
        fprintf(out, " {\n");
        if (listen->group != NULL)
            print_string(out, "    ", "group", listen->group);
        if (strncmp(listen->uri, "unix:", 5) == 0)
            fprintf(out, "    mode = \"%04o\"\n    admin = %s\n", listen->mode,
                    listen->admin ? "true" : "false");
        fprintf(out, "}\n");
    }
    if (config->metrics != NULL)
        print_string(out, "", "metrics", config->metrics);
    print_string(out, "", "state", config->state);
    if (config->master_key != NULL) {
        fprintf(out, "store {\n");
        print_string(out, "    ", "master-key", config->master_key);
        fprintf(out, "}\n");
    }
    fprintf(out, "log-level = %s\npin-workers = %s\n", cm_log_level_name(config->log_level),
            config->pin_workers ? "true" : "false");
    print_numbers(config, out, "", NULL);
    fprintf(out, "limits {\n");
    print_numbers(config, out, "    ", "limits");
    fprintf(out, "}\n");
}
