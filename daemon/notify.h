/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager about readiness, in the protocol of sd_notify(3). */
#ifndef CM_NOTIFY_H
#define CM_NOTIFY_H

/* Sends `state` ("READY=1", "STOPPING=1") to the socket that NOTIFY_SOCKET names; without one, and when
 * nobody listens there, nothing happens. */
void cm_notify(const char *state);

#endif
