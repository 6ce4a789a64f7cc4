/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a plan's masks. */
#include "plan.h"
#include "text.h"

uint32_t plan_combinations(const struct plan *plan, struct combination ret[PLAN_COMBINATIONS])
{
    uint32_t count = 0;

    for (int direction = CM_ENCRYPT; direction <= CM_DECRYPT; direction++) {
        for (int mode = CM_ECB; mode <= CM_XTS; mode++) {
            if ((plan->modes & CM_MODE_BIT(mode)) != 0 &&
                (plan->directions & PLAN_DIRECTION_BIT(direction)) != 0)
                ret[count++] = (struct combination){mode, direction};
        }
    }
    return count;
}

const char *plan_mode_name(const struct plan *plan)
{
    return text_modes_count(plan->modes) == 1 ? text_mode_name(text_modes_first(plan->modes)) : "mixed";
}

const char *plan_direction_name(const struct plan *plan)
{
    if (plan->directions == PLAN_DIRECTION_BIT(CM_ENCRYPT))
        return "encrypt";
    return plan->directions == PLAN_DIRECTION_BIT(CM_DECRYPT) ? "decrypt" : "mixed";
}
