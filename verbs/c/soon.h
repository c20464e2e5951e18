/* Commands that the service is about to have. */
#ifndef ROCED_SOON_H
#define ROCED_SOON_H
enum { ROCED_OPEN_ASYNC_EVENTS = 23 };
#endif
