/* What the test programs of streams (rsockets) have in common. */
#ifndef STREAMS_H
#define STREAMS_H

#include "check.h"

#include <rdma/rsocket.h>

/* listener is a socket that listens at some port of this host. */
static inline int listener(uint16_t *port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int l = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(l >= 0 && rbind(l, self(0), sizeof(in)) == 0 && rlisten(l, 4) == 0);
	CHECK(rgetsockname(l, (struct sockaddr *)&in, &len) == 0);
	*port = in.sin_port;
	return l;
}

#endif
