/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the response files of NIST's validation programme, strictly: a line that is not understood fails. */
#include "vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

char *vector_file_read(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", CM_VECTORS, name);
    FILE *file = fopen(path, "rb");
    require(file != NULL, "cannot open %s", path);
    require(fseek(file, 0, SEEK_END) == 0, "cannot seek in %s", path);
    long size = ftell(file);
    rewind(file);
    require(size > 0, "%s is empty", path);
    char *text = malloc((size_t)size + 1);
    require(text != NULL && fread(text, 1, (size_t)size, file) == (size_t)size, "cannot read %s", path);
    fclose(file);
    size_t kept = 0;
    for (size_t i = 0; i < (size_t)size; i++)
        if (text[i] != '\r')
            text[kept++] = text[i];
    text[kept] = '\0';
    return text;
}

static size_t field_index(const struct vector_record *record, const char *name)
{
    for (size_t i = 0; i < record->fields; i++)
        if (strcasecmp(record->names[i], name) == 0)
            return i;
    return record->fields;
}

bool vector_record_has(const struct vector_record *record, const char *name)
{
    return field_index(record, name) < record->fields;
}

void vector_record_get(const struct vector_record *record, const char *name, struct vector_bytes *ret_bytes)
{
    size_t index = field_index(record, name);
    require(index < record->fields, "%s, count %d: no %s", record->file, record->number, name);
    vector_bytes_read(ret_bytes, record->values[index]);
}

size_t vector_record_number(const struct vector_record *record, const char *name)
{
    size_t index = field_index(record, name), number;
    char rest;
    require(index < record->fields, "%s, count %d: no %s", record->file, record->number, name);
    require(sscanf(record->values[index], "%zu%c", &number, &rest) == 1, "%s, count %d: %s is \"%s\"",
            record->file, record->number, name, record->values[index]);
    return number;
}

/* "[ENCRYPT]" or "[Taglen = 128]", the brackets already off. */
static void section_line(struct vector_record *record, const char *line)
{
    static const char *const names[] = {"IVlen", "PTlen", "AADlen", "Taglen"};
    char word[16];
    int value;
    int found = sscanf(line, "%15[A-Za-z] = %d", word, &value);
    require(found >= 1, "%s: cannot read [%s]", record->file, line);
    if (found == 1) {
        memcpy(record->section, word, sizeof word);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0)
            record->lengths_bits[i] = value;
}

/* "NAME = hex", "NAME =" or "NAME"; puts the name and the value's start into the record. */
static void field_line(struct vector_record *record, char *line)
{
    size_t length = strcspn(line, " =");
    require(record->fields < 8 && length > 0 && length < sizeof record->names[0], "%s: cannot read \"%s\"",
            record->file, line);
    char *name = record->names[record->fields];
    memcpy(name, line, length);
    name[length] = '\0';
    char *value = line + length;
    value += strspn(value, " =");
    record->values[record->fields++] = value;
}

struct reader {
    struct vector_record record;
    bool open; /* a COUNT was seen that was not yet given away */
    void (*on_record)(const struct vector_record *record, void *context);
    void *context;
};

static void end_record(struct reader *reader)
{
    if (reader->open)
        reader->on_record(&reader->record, reader->context);
    reader->open = false;
    reader->record.fields = 0;
}

static void read_line(struct reader *reader, char *line)
{
    struct vector_record *record = &reader->record;
    if (*line == '\0' || *line == '#')
        return;
    if (*line == '[') {
        end_record(reader);
        section_line(record, line + 1);
        return;
    }
    if (strncasecmp(line, "count", 5) == 0) {
        end_record(reader);
        reader->open = true;
        require(sscanf(line + 5, " = %d", &record->number) == 1, "%s: cannot read \"%s\"", record->file,
                line);
        return;
    }
    require(reader->open, "%s: \"%s\" stands before any count", record->file, line);
    field_line(record, line);
}

void vector_records_read(const char *name,
                         void (*on_record)(const struct vector_record *record, void *context), void *context)
{
    char *text = vector_file_read(name);
    struct reader reader = {
        .record = {.file = name, .lengths_bits = {-1, -1, -1, -1}},
        .on_record = on_record,
        .context = context,
    };
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        read_line(&reader, line);
        line = end == NULL ? NULL : end + 1;
    }
    end_record(&reader);
    free(text);
}
