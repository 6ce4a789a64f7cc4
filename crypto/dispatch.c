/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of implementations, and which of them serves each mode and direction here. */
#include "cpu.h"
#include "impl.h"

#include <stdio.h>
#include <string.h>

#if CM_X86
#define X86(implementation) (&(implementation))
#else
#define X86(implementation) NULL
#endif

/* From the narrowest to the widest. A limit means an entry and all before it. An entry without an
 * implementation is a name that another architecture has. */
static const struct {
    const char *name;
    const struct cm_implementation *implementation;
} table[] = {
    {"portable", &cm_portable},
    {"aesni", X86(cm_aesni)},
    {"vaes256", X86(cm_vaes256)},
    {"vaes512", X86(cm_vaes512)},
};
enum { TABLE_LENGTH = sizeof table / sizeof table[0] };

/* Where another implementation was measured to be faster than the widest. It is chosen where it is available
 * and narrower than what would be chosen otherwise. */
static const struct {
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    enum cm_aes_size_class size_class;
    const char *name;
} exceptions[] = {
    /* One or two messages leave most lanes of a group empty, whose set-up is paid for all the same. */
    {CM_AES_GCM, CM_AES_ENCRYPT, CM_AES_SHORT, "aesni"},
    {CM_AES_GCM, CM_AES_DECRYPT, CM_AES_SHORT, "aesni"},
    {CM_AES_XTS, CM_AES_ENCRYPT, CM_AES_SHORT, "aesni"},
    {CM_AES_XTS, CM_AES_DECRYPT, CM_AES_SHORT, "aesni"},
    /* Messages of less than four 512-bit vectors: twice as many narrow ones overlap better. */
    {CM_AES_ECB, CM_AES_ENCRYPT, CM_AES_SMALL, "vaes256"},
    {CM_AES_ECB, CM_AES_DECRYPT, CM_AES_SMALL, "vaes256"},
    {CM_AES_CBC, CM_AES_DECRYPT, CM_AES_SMALL, "vaes256"},
};
enum { EXCEPTIONS_LENGTH = sizeof exceptions / sizeof exceptions[0] };

/* What cm_aes_init found out. Written there, before any other thread uses crypto/; read everywhere. */
static struct {
    const char *reason; /* why not available, or "" */
    bool runs;          /* the processor can run it */
    char text[96];      /* of `reason`, where it is not constant */
    struct cm_aes_row row;
} found[TABLE_LENGTH][CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
static struct {
    size_t index[CM_AES_SIZE_CLASS_COUNT]; /* in the table */
    struct cm_aes_row row;
} chosen[CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
static bool resolved;

static const struct cm_kernel *kernel_at(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    const struct cm_implementation *implementation = table[index].implementation;
    if (implementation == NULL || implementation->kernels[mode][direction].name == NULL)
        return NULL;
    return &implementation->kernels[mode][direction];
}

void cm_row_init(struct cm_aes_row *ret_row, const struct cm_kernel *const kernels[CM_AES_SIZE_CLASS_COUNT])
{
    size_t end = 0;
    for (int i = 0; i < CM_AES_SIZE_CLASS_COUNT; i++) {
        ret_row->kernel[i] = kernels[i];
        int same = 0;
        while (kernels[same] != kernels[i])
            same++;
        if (same < i) {
            ret_row->form_at[i] = ret_row->form_at[same];
            continue;
        }
        size_t size = sizeof(struct cm_kernel_key) + kernels[i]->form_size;
        ret_row->form_at[i] = end;
        end += (size + CM_AES_KEY_ALIGN - 1) / CM_AES_KEY_ALIGN * CM_AES_KEY_ALIGN;
    }
    ret_row->forms_size = end;
}

void cm_row_init_uniform(struct cm_aes_row *ret_row, const struct cm_kernel *kernel)
{
    const struct cm_kernel *kernels[CM_AES_SIZE_CLASS_COUNT];
    for (int i = 0; i < CM_AES_SIZE_CLASS_COUNT; i++)
        kernels[i] = kernel;
    cm_row_init(ret_row, kernels);
}

/* Where dispatch starts. `named`: by this very name it was asked for. */
struct request {
    uint32_t features;
    size_t limit; /* index of the widest that is allowed */
    bool named;
};

/* Looks at one implementation for one mode and direction, the narrower ones done. */
static void examine(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction,
                    const struct request *request)
{
    const struct cm_implementation *implementation = table[index].implementation;
    const struct cm_kernel *kernel = kernel_at(index, mode, direction);
    const struct cm_kernel *reference = index == 0 ? NULL : kernel_at(0, mode, direction);
    const char *reason = "";
    const char *wrong;
    bool runs = false;
    if (implementation == NULL) {
        reason = "not part of this build";
    } else if (kernel == NULL) {
        reason = "has no kernel for this mode and direction";
    } else if ((request->features & implementation->needs) != implementation->needs) {
        reason = implementation->lacks;
    } else {
        cm_row_init_uniform(&found[index][mode][direction].row, kernel);
        runs = true;
        if (index > request->limit) {
            reason = "limited by CIPHERMILL_CPU";
        } else if (request->features & implementation->avoids &&
                   !(request->named && index == request->limit)) {
            reason = implementation->avoids_text;
        } else if ((wrong = cm_selftest(kernel, reference)) != NULL) {
            (void)snprintf(found[index][mode][direction].text, sizeof found[index][mode][direction].text,
                           "self-test failed: %s", wrong);
            reason = found[index][mode][direction].text;
        }
    }
    found[index][mode][direction].reason = reason;
    found[index][mode][direction].runs = runs;
}

/* The widest that is available, or what the exceptions say; TABLE_LENGTH if nothing is. */
static size_t choose(enum cm_aes_mode mode, enum cm_aes_direction direction,
                     enum cm_aes_size_class size_class)
{
    size_t widest = TABLE_LENGTH;
    for (size_t index = 0; index < TABLE_LENGTH; index++)
        if (found[index][mode][direction].reason[0] == '\0')
            widest = index;
    for (size_t i = 0; i < EXCEPTIONS_LENGTH; i++) {
        if (exceptions[i].mode != mode || exceptions[i].direction != direction ||
            exceptions[i].size_class != size_class)
            continue;
        for (size_t index = 0; index < TABLE_LENGTH && index < widest; index++)
            if (strcmp(table[index].name, exceptions[i].name) == 0 &&
                found[index][mode][direction].reason[0] == '\0')
                return index;
    }
    return widest;
}

/* False if not even portable passed its self-test. */
static bool resolve(enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    const struct cm_kernel *kernels[CM_AES_SIZE_CLASS_COUNT];
    for (int i = 0; i < CM_AES_SIZE_CLASS_COUNT; i++) {
        size_t index = choose(mode, direction, (enum cm_aes_size_class)i);
        if (index == TABLE_LENGTH)
            return false;
        chosen[mode][direction].index[i] = index;
        kernels[i] = kernel_at(index, mode, direction);
    }
    cm_row_init(&chosen[mode][direction].row, kernels);
    return true;
}

int cm_dispatch_init(uint32_t features, const char *limit)
{
    struct request request = {.features = features, .limit = TABLE_LENGTH - 1};
    if (limit != NULL && limit[0] != '\0') {
        request.named = true;
        request.limit = 0;
        while (request.limit < TABLE_LENGTH && strcmp(table[request.limit].name, limit) != 0)
            request.limit++;
        if (request.limit == TABLE_LENGTH)
            return CM_AES_UNAVAILABLE;
    }
    int status = CM_AES_OK;
    for (enum cm_aes_mode mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (enum cm_aes_direction direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            for (size_t index = 0; index < TABLE_LENGTH; index++)
                examine(index, mode, direction, &request);
            if (!resolve(mode, direction))
                status = CM_AES_UNAVAILABLE;
        }
    resolved = status == CM_AES_OK;
    return status;
}

int cm_aes_init(const char *limit)
{
    return cm_dispatch_init(cm_cpu_features(), limit);
}

const struct cm_aes_row *cm_aes_row(enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    return resolved ? &chosen[mode][direction].row : NULL;
}

const struct cm_aes_row *cm_aes_row_named(enum cm_aes_mode mode, enum cm_aes_direction direction,
                                          const char *implementation)
{
    for (size_t index = 0; index < TABLE_LENGTH; index++)
        if (strcmp(table[index].name, implementation) == 0 && found[index][mode][direction].runs)
            return &found[index][mode][direction].row;
    return NULL;
}

const char *cm_aes_row_name(const struct cm_aes_row *row, enum cm_aes_size_class size_class)
{
    return row->kernel[size_class]->name;
}

bool cm_aes_implementation(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction,
                           struct cm_aes_implementation *ret_implementation)
{
    if (index >= TABLE_LENGTH)
        return false;
    const char *reason = found[index][mode][direction].reason;
    if (reason == NULL)
        reason = "cm_aes_init has not run";
    *ret_implementation = (struct cm_aes_implementation){
        .name = table[index].name,
        .compiled = kernel_at(index, mode, direction) != NULL,
        .available = reason[0] == '\0',
        .reason = reason,
    };
    for (int i = 0; i < CM_AES_SIZE_CLASS_COUNT; i++)
        ret_implementation->used[i] = resolved && chosen[mode][direction].index[i] == index;
    return true;
}
