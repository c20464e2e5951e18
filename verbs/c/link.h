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
	bool reading;            /* one of those that wait reads the socket */
	bool over;               /* no answers come any more */
	struct asked *waiting;
	_Atomic int *gone;       /* of the session, set when the service says that it has ended; or NULL */
	unsigned char *buffer;   /* of who reads */
};

/* A command, and its answer. */
struct asked {
	uint16_t command;
	const void *request;
	size_t request_len;
	void *grant;
	size_t cap, len;         /* of the grant: room, bytes that came */
	int fds[ROCED_MAX_FDS];
	int nfds;                /* descriptors that came; the asker's */

	uint32_t id;
	bool done;
	int error;
	char text[256];          /* of a failure */
	pthread_cond_t turn;
	struct asked *next;
};

/*
 * Connects and says hello. The devices' names come back in names, for free(). 0 or an errno, with the
 * text in why.
 */
int link_connect(struct link *link, struct roced_hello_entry **names, size_t *count, char *why,
	size_t why_size);
void link_close(struct link *link);

/* Gives a command and waits for its answer: asked->error is 0 or an errno, and is returned. */
int link_ask(struct link *link, struct asked *asked);

/* From now on answers may take as long as they do; before, 10 s are the most. */
void link_settle(struct link *link);

/* Reads what the service has said, without waiting; false when the connection is over. */
bool link_look(struct link *link);

/* In the child of a fork: nobody waits, and the connection is the parent's. */
void link_forget(struct link *link);

#endif
