/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's session on a device of the service: the connection, commands, and the shared memory.
 *
 * A process has one session per device, reference-counted. libibverbs and librdmacm share it: roced_session_open
 * returns the same one to both. There is no thread here: one of the threads that wait for responses reads the socket,
 * and hands responses to the others by their ids.
 *
 * All functions may be called by any thread. They return 0 or libibverbs' errno, unless documented otherwise. With
 * ROCED_DEBUG set in the environment, the text of each failure goes to stderr.
 *
 * After fork the parent's sessions are invalid in the child: commands on them return EIO with a message. The child may
 * open sessions of its own, and commands that need only the device open one (roced_session_here).
 *
 * libibverbs.so.1 exports these functions at version ROCED_PRIVATE, for librdmacm.
 */
#ifndef ROCED_SESSION_H
#define ROCED_SESSION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../../datapath/ring/ring.h"
#include "../proto/proto.h"

#define ROCED_EXPORT __attribute__((visibility("default")))

enum {
	ROCED_MAX_FDS = 4,      /* descriptors that come with one reply */
	ROCED_NAME_SIZE = 64,   /* of a device's name, with the 0 at its end */
};

/* A device of the service. */
struct roced_device_entry {
	char name[ROCED_NAME_SIZE];
	uint64_t node_guid;      /* in the host's byte order, as all of proto.h */
	uint64_t sys_image_guid;
};

/* Why a session is over. */
enum roced_gone {
	ROCED_THERE = 0,
	ROCED_ENDED_BY_SERVICE,  /* the device has failed, or the service has ended */
	ROCED_FORKED,            /* this is a child of the process that opened it */
};

struct context;
struct ibv_context;

/* The front of a session, which queues read. The rest is session.c's. */
struct roced_session {
	_Atomic int gone;        /* enum roced_gone */
	int calls;               /* eventfd that wakes the card */
	struct roced_doorbell *doorbell;
	uint8_t *memory;         /* the shared memory, of which grants name parts */
	uint64_t memory_size;
	char name[ROCED_NAME_SIZE];
	struct context *context; /* what libibverbs' contexts of the session have in common; NULL until there is one */
};

/*
 * Returns the devices of the service, in a list for free(). The list is empty without a service, and if the service has
 * another version, which is reported once per process on stderr.
 */
ROCED_EXPORT int roced_list_devices(struct roced_device_entry **list, size_t *count);

/*
 * Returns the session on a device, and opens it first if necessary; NULL with errno set: ENODEV if the device or the
 * service does not exist, or has another version. A NULL or empty name selects the first device. Each call needs a
 * roced_session_close.
 */
ROCED_EXPORT struct roced_session *roced_session_open(const char *name);
ROCED_EXPORT void roced_session_close(struct roced_session *session);

/*
 * Returns the session for commands that need only the device: the session itself, or in the child of a fork one of the
 * child's own on that device, which is opened at the first call and closed with the session. If opening fails it
 * returns the session, which returns EIO. When the child's own session has ended, so has this: the child then opens the
 * device as without a fork.
 */
ROCED_EXPORT struct roced_session *roced_session_here(struct roced_session *session);

/*
 * roced_ask gives a command, by its number in enum roced_command, and waits for the answer. On failure it
 * sets errno to the error that it returns.
 *
 * request is the command's structure in proto.h, with its list behind it if it has one; NULL and 0 if it
 * has no fields. The grant goes to grant, of which grant_cap bytes are there; longer grants are EPROTO.
 * granted, if not NULL, gets its length, which else must be exactly grant_cap.
 *
 * fds takes the descriptors of the reply, at most *nfds; *nfds gets their number. They are close-on-exec.
 * Descriptors that the caller has no room for are closed. Both may be NULL.
 *
 * A command that waits in the service (create_ah, get_cm_event of a blocking kind) makes only its own
 * thread wait.
 */
ROCED_EXPORT int roced_ask(struct roced_session *session, uint16_t command, const void *request,
	size_t request_len,
	void *grant, size_t grant_cap, size_t *granted, int *fds, int *nfds);

/* roced_ask for a grant of fixed size and no descriptors. */
#define roced_ask_simple(session, command, request, grant) \
	roced_ask(session, command, request, sizeof(*(request)), grant, sizeof(*(grant)), NULL, NULL, NULL)

/* roced_tell is roced_ask for a command that grants nothing. */
ROCED_EXPORT int roced_tell(struct roced_session *session, uint16_t command, const void *request,
	size_t request_len);

/*
 * roced_release is roced_tell for a command that frees something: 0 when the session is over, which
 * has freed it.
 */
ROCED_EXPORT int roced_release(struct roced_session *session, uint16_t command, const void *request,
	size_t request_len);

/*
 * roced_pass_file passes a file to the service, for the command that follows (open_xrcd, share_memory).
 * The caller holds roced_passing_lock from before this call until after that command, and is not cancelled meanwhile.
 */
ROCED_EXPORT int roced_pass_file(struct roced_session *session, int fd);
ROCED_EXPORT void roced_passing_lock(struct roced_session *session);
ROCED_EXPORT void roced_passing_unlock(struct roced_session *session);

/* The part of the shared memory that a grant names; NULL if it is not within it. */
ROCED_EXPORT void *roced_memory_at(struct roced_session *session, const struct roced_place *place);

/* Looks whether the service is still there, without waiting. 0, or EIO when the session is over. */
ROCED_EXPORT int roced_session_check(struct roced_session *session);

/* The text of the last failure of this thread, "" if there was none: for messages. */
ROCED_EXPORT const char *roced_last_failure(void);

/* Prints a failure to stderr, if ROCED_DEBUG is set; errno is preserved. */
ROCED_EXPORT void roced_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Returns libibverbs' context on a device: one for all callers, counted with the session. librdmacm sets id->verbs to
 * it, and releases it by ibv_close_device. NULL with errno set, as roced_session_open.
 */
ROCED_EXPORT struct ibv_context *roced_context_open(const char *name);

/* The session of such a context. */
ROCED_EXPORT struct roced_session *roced_session_of(struct ibv_context *context);

/*
 * The two halves of ibv_poll_cq: a poll that never waits, and the wait after an empty one (wait.c). A caller with
 * several queues waits only when all were empty.
 */
struct ibv_cq;
struct ibv_wc;
ROCED_EXPORT int roced_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);
ROCED_EXPORT void roced_give_way(struct ibv_cq *cq);

/* Wakes up the sleeping card. Queues call it when the doorbell requires it. */
ROCED_EXPORT void roced_wake(struct roced_session *session);

#endif
