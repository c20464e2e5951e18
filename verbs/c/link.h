/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the service: packets, and commands by their ids. Used by session.c and device lists
 * only.
 */
#ifndef ROCED_LINK_H
#define ROCED_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

struct asked;

struct link {
	int fd;
	pthread_mutex_t mu;
	uint32_t last_id;
	bool reading;            /* one of the waiting threads reads the socket */
	bool over;               /* no further responses arrive */
	struct asked *waiting;
	_Atomic int *gone;       /* of the session, set when the service reports its end; or NULL */
	unsigned char *buffer;   /* of the reading thread */
};

/* A command and its response. */
struct asked {
	uint16_t command;
	const void *request;
	size_t request_len;
	void *grant;
	size_t cap, len;         /* of the grant: space, bytes received */
	int fds[ROCED_MAX_FDS];
	int nfds;                /* received descriptors, owned by the caller */

	uint32_t id;
	bool done;
	int error;
	char text[256];          /* of a failure */
	pthread_cond_t turn;
	struct asked *next;
};

/*
 * Connects and sends hello. Returns the devices' names in names, for free(). 0 or an errno, with the
 * text in why.
 */
int link_connect(struct link *link, struct roced_hello_entry **names, size_t *count, char *why,
	size_t why_size);
void link_close(struct link *link);

/* Sends a command and waits for its response: asked->error is 0 or an errno, and is returned. */
int link_ask(struct link *link, struct asked *asked);

/* Removes the time limit of responses, which is 10 s before. */
void link_settle(struct link *link);

/* Reads pending messages of the service, without waiting; false if the connection has ended. */
bool link_look(struct link *link);

/* In the child of a fork: no thread waits, and the connection is the parent's. */
void link_forget(struct link *link);

#endif
