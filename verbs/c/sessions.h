/* SPDX-License-Identifier: Apache-2.0 */
/* What session.c has for the other files of libibverbs alone. */
#ifndef ROCED_SESSIONS_H
#define ROCED_SESSIONS_H

#include "session.h"

/*
 * Notes why the service cannot be reached. One of another version is told once on stderr, in all else
 * ROCED_DEBUG decides. Gives ENODEV.
 */
int roced_no_service(int failed, const char *why);

/* How many use the session. */
unsigned roced_session_users(struct roced_session *session);

#endif
