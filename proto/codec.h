/* SPDX-License-Identifier: Apache-2.0 */
/* Frame headers to plain structs and back. codec*.c are the only files that know protobuf-c. */
#ifndef CM_CODEC_H
#define CM_CODEC_H

#include "frame.h"
#include "message.h"
#include "status.h"

/* Memory for decoding, handed out from one block and never freed singly. The block is the caller's. */
struct cm_arena {
    uint8_t *memory;
    size_t capacity, used;
};

enum {
    /* Enough to decode any batch, reply, call or greeting of CM_HEADER_LIMIT bytes, and any answer that a
     * daemon has a reason to send. What would need more ends in CM_CODEC_TOO_COMPLEX. */
    CM_ARENA_BYTES = 16 * CM_HEADER_LIMIT,
    /* Fields that a header may have, on all levels together and unknown ones included; only answers, which
     * are lists, may have more. A packed column is one field. Over it: CM_CODEC_TOO_COMPLEX. */
    CM_HEADER_FIELDS_MAX = 1024
};

void cm_arena_init(struct cm_arena *arena, void *memory, size_t capacity);
void cm_arena_reset(struct cm_arena *arena);
/* 16-byte aligned; NULL when the arena is full. */
void *cm_arena_take(struct cm_arena *arena, size_t length);

enum cm_codec_error {
    CM_CODEC_OK = 0,
    CM_CODEC_MALFORMED = -1,   /* no protobuf message of that type, or columns that contradict one another */
    CM_CODEC_TOO_COMPLEX = -2, /* too many fields, or the arena is too small for it */
    CM_CODEC_NO_ROOM = -3 /* encoding: the buffer or the arena is too small, or the header over its limit */
};

/* Decoding: `header` holds exactly the header. On failure the arena may be partly used and *ret is untouched,
 * but for `request_id`, which the messages that have one fill even then, so that an answer can name it: 0
 * where it could not be read. Unknown fields are passed over. Unknown modes and directions are handed on (255
 * for what does not fit the byte); an unknown part, a string with a zero byte inside, and a token or id of a
 * wrong length are CM_CODEC_MALFORMED. Strings are terminated copies and never NULL. */
int cm_codec_get_hello(struct cm_arena *, const uint8_t *header, size_t length, struct cm_hello *ret_hello);
int cm_codec_get_welcome(struct cm_arena *, const uint8_t *header, size_t length,
                         struct cm_welcome *ret_welcome);
int cm_codec_get_refusal(struct cm_arena *, const uint8_t *header, size_t length,
                         struct cm_refusal *ret_refusal);
int cm_codec_get_goodbye(struct cm_arena *, const uint8_t *header, size_t length,
                         struct cm_goodbye *ret_goodbye);
int cm_codec_get_batch(struct cm_arena *, const uint8_t *header, size_t length, struct cm_batch *ret_batch);
int cm_codec_get_batch_reply(struct cm_arena *, const uint8_t *header, size_t length,
                             struct cm_batch_reply *ret_reply);
int cm_codec_get_call(struct cm_arena *, const uint8_t *header, size_t length, struct cm_call *ret_call);
int cm_codec_get_answer(struct cm_arena *, const uint8_t *header, size_t length,
                        struct cm_answer *ret_answer);

/* Encoding: writes prefix, header and zero padding, everything of the frame but its body, into `buffer`.
 * `body_length` goes into the prefix. Sets *ret_length to the bytes written, always a multiple of 64.
 * `arena` is scratch for the time of the call and is left as it was found. A string may be NULL for an empty
 * one. A struct that contradicts itself, and could not be decoded again, is CM_CODEC_MALFORMED. */
int cm_codec_put_hello(struct cm_arena *, const struct cm_hello *, uint8_t *buffer, size_t capacity,
                       size_t *ret_length);
int cm_codec_put_welcome(struct cm_arena *, const struct cm_welcome *, uint8_t *buffer, size_t capacity,
                         size_t *ret_length);
int cm_codec_put_refusal(struct cm_arena *, const struct cm_refusal *, uint8_t *buffer, size_t capacity,
                         size_t *ret_length);
int cm_codec_put_goodbye(struct cm_arena *, const struct cm_goodbye *, uint8_t *buffer, size_t capacity,
                         size_t *ret_length);
int cm_codec_put_batch(struct cm_arena *, const struct cm_batch *, uint32_t body_length, uint8_t *buffer,
                       size_t capacity, size_t *ret_length);
int cm_codec_put_batch_reply(struct cm_arena *, const struct cm_batch_reply *, uint32_t body_length,
                             uint8_t *buffer, size_t capacity, size_t *ret_length);
int cm_codec_put_call(struct cm_arena *, const struct cm_call *, uint32_t body_length, uint8_t *buffer,
                      size_t capacity, size_t *ret_length);
int cm_codec_put_answer(struct cm_arena *, const struct cm_answer *, uint8_t *buffer, size_t capacity,
                        size_t *ret_length);

#endif
