/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds every file of a folder to a fuzz target, once: the corpus as a test, with any compiler. */
#include "fuzz_target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Exactly as much memory as the file has bytes, so that a sanitizer sees a read behind them. */
static int replay_file(const char *path)
{
    struct stat status;
    uint8_t *data;
    size_t size;
    FILE *file = fopen(path, "rb");

    if (file == NULL || fstat(fileno(file), &status) != 0) {
        perror(path);
        if (file != NULL)
            (void)fclose(file);
        return -1;
    }
    size = (size_t)status.st_size;
    data = malloc(size == 0 ? 1 : size);
    if (data == NULL || fread(data, 1, size, file) != size) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        (void)fclose(file);
        return -1;
    }
    (void)fclose(file);
    /* Said before it runs, so that the last line names the culprit of a crash. */
    printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned replayed = 0;

    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        const struct dirent *entry;

        if (folder == NULL) {
            perror(argv[i]);
            return 1;
        }
        while ((entry = readdir(folder)) != NULL) {
            char path[4096];

            if (entry->d_name[0] == '.')
                continue;
            (void)snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay_file(path) != 0)
                return 1;
            replayed++;
        }
        (void)closedir(folder);
    }
    if (replayed == 0) {
        (void)fprintf(stderr, "no seed was replayed\n");
        return 1;
    }
    printf("%u seeds replayed\n", replayed);
    return 0;
}
