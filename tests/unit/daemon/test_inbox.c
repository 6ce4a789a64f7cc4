/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox: order from one thread, nothing lost or seen twice from several, and who must wake the owner. */
#include "inbox.h"

#include "suite.h"
#include <pthread.h>
#include <sched.h>

enum { SENDERS = 4, EACH = 20000 };

struct letter {
    struct cm_inbox_item item;
    unsigned sender, number;
    unsigned long written; /* before it is put, read when it runs */
};

struct owner {
    struct cm_inbox *inbox;
    unsigned next[SENDERS];
    unsigned total;
    struct letter *again; /* put once more while it runs */
};

static void on_letter(struct cm_inbox_item *item, void *context)
{
    struct letter *letter = (struct letter *)item;
    struct owner *owner = context;
    ck_assert_uint_eq(letter->number, owner->next[letter->sender]);
    ck_assert_uint_eq(letter->written, (unsigned long)letter->number * 3 + letter->sender);
    owner->next[letter->sender]++;
    owner->total++;
}

static void on_again(struct cm_inbox_item *item, void *context)
{
    struct owner *owner = context;
    owner->total++;
    if (owner->total < 3)
        ck_assert(cm_inbox_put(owner->inbox, item));
}

START_TEST(order_and_wake)
{
    struct cm_inbox inbox = {0};
    struct owner owner = {.inbox = &inbox};
    struct letter letters[3];
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 0);
    for (unsigned i = 0; i < 3; i++) {
        letters[i] = (struct letter){.item.run = on_letter, .number = i, .written = i * 3};
        ck_assert_int_eq(cm_inbox_put(&inbox, &letters[i].item), i == 0);
    }
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 3);
    ck_assert_uint_eq(owner.total, 3);
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 0);
}
END_TEST

START_TEST(put_while_running)
{
    struct cm_inbox inbox = {0};
    struct owner owner = {.inbox = &inbox};
    struct letter letter = {.item.run = on_again};
    ck_assert(cm_inbox_put(&inbox, &letter.item));
    /* What is put meanwhile waits for the next round: a loop gets to its other events in between. */
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 1);
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 1);
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 1);
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 0);
}
END_TEST

struct sender {
    struct cm_inbox *inbox;
    struct letter *letters;
    unsigned index;
    _Atomic unsigned *wakes;
};

static void *send_all(void *context)
{
    struct sender *sender = context;
    for (unsigned i = 0; i < EACH; i++) {
        struct letter *letter = &sender->letters[i];
        letter->item.run = on_letter;
        letter->sender = sender->index;
        letter->number = i;
        letter->written = (unsigned long)i * 3 + sender->index;
        if (cm_inbox_put(sender->inbox, &letter->item))
            atomic_fetch_add(sender->wakes, 1);
    }
    return NULL;
}

/* Every batch of items that the owner finds was announced by exactly one sender. */
START_TEST(several_threads)
{
    static struct letter letters[SENDERS][EACH];
    struct cm_inbox inbox = {0};
    struct owner owner = {.inbox = &inbox};
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    _Atomic unsigned wakes = 0;
    unsigned rounds = 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&inbox, letters[i], i, &wakes};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    while (owner.total < SENDERS * EACH) {
        if (cm_inbox_run(&inbox, &owner) > 0)
            rounds++;
        else
            sched_yield();
    }
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(cm_inbox_run(&inbox, &owner), 0);
    ck_assert_uint_eq(owner.total, SENDERS * EACH);
    ck_assert_uint_eq(atomic_load(&wakes), rounds);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, order_and_wake);
    tcase_add_test(test_case, put_while_running);
    tcase_set_timeout(test_case, 120);
    tcase_add_test(test_case, several_threads);
}

int main(void)
{
    return run_suite("inbox", add);
}
