/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up rows of a command table. */
#include "commands.h"
#include "text.h"
#include <stdio.h>
#include <string.h>

const struct command *command_find(const struct command *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

const struct command *command_need(const struct command *table, size_t count, const char *parent,
                                   const char *name)
{
    const struct command *row = command_find(table, count, name);
    const char *space = parent[0] == '\0' ? "" : " ";

    if (row != NULL)
        return row;
    for (size_t i = 0; i < count; i++) {
        if (text_is_near(name, table[i].name)) {
            report_usage(parent, "no command '%s%s%s': did you mean '%s%s%s'?", parent, space, name, parent,
                         space, table[i].name);
            return NULL;
        }
    }
    report_usage(parent, "no command '%s%s%s'", parent, space, name);
    return NULL;
}

void command_print(const struct command *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("  %-16s %s\n", table[i].name, table[i].summary);
}
