/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's half of queues, by commands on standard input: a test in Go is the card's half of the same
 * memory.
 *
 *	queueside FILE SEND RECV CQ     offsets of the queues in the file, of which the doorbell is the front
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../queue.h"

enum { ENTRIES = 8, SEND_STRIDE = 128, RECV_STRIDE = 64, CQ_STRIDE = 64 };

static struct roced_send_queue send;
static struct roced_recv_queue recv;
static struct roced_cq cq;
static uint32_t send_polled, recv_polled;

static struct roced_sge sge_of(uint64_t id, uint32_t i) { return (struct roced_sge){ id * 3 + i,
	(uint32_t)id + i, i }; }

static void post_send(void)
{
	struct roced_rdma_wqe w = { 0 };
	unsigned opcode, flags, count;

	if (scanf("%" SCNu64 " %u %u %" SCNu32 " %" SCNu64 " %" SCNu32 " %u", &w.id, &opcode, &flags, &w.imm,
		&w.remote_addr, &w.rkey, &count) != 7)
		exit(2);
	bool room = roced_send_outstanding(&send, send_polled) < ENTRIES;
	if (room) {
		w.opcode = (uint8_t)opcode;
		w.flags = (uint8_t)flags;
		w.sge_count = (uint16_t)count;
		uint8_t *slot = roced_send_next(&send);
		memcpy(slot, &w, sizeof(w));
		for (unsigned i = 0; i < count; i++) {
			struct roced_sge s = sge_of(w.id, i);
			memcpy(slot + send.header + i * sizeof(s), &s, sizeof(s));
		}
		roced_send_publish(&send);
	}
	printf("%d\n", room);
}

static void post_recv(void)
{
	struct roced_sge list[3];
	uint64_t id;
	uint32_t count;

	if (scanf("%" SCNu64 " %" SCNu32, &id, &count) != 2 || count > 3)
		exit(2);
	bool room = roced_recv_outstanding(&recv, recv_polled) < ENTRIES;
	if (room) {
		for (uint32_t i = 0; i < count; i++)
			list[i] = sge_of(id, i);
		roced_recv_put(&recv, id, list, count);
		roced_recv_publish(&recv);
	}
	printf("%d %d\n", room, roced_recv_must_ring(&recv));
}

static void poll_one(void)
{
	const struct roced_stamped_cqe *at = roced_cq_oldest(&cq);

	if (!at) {
		puts("none");
		return;
	}
	struct roced_cqe e = at->cqe;
	roced_cq_step(&cq);
	roced_cq_publish(&cq);
	if (e.opcode & ROCED_WC_RECV)
		recv_polled++;
	else
		send_polled++;
	printf("%" PRIu64 " %u %u %u %u %u %u %u %u %u %u %u %u %u\n", e.id, e.status, e.opcode, e.flags,
		e.byte_length, e.imm, e.qpn, e.source_qp,
		e.token, e.vendor_error, e.pkey_index, e.vlan, e.service_level, e.port);
}

static bool even(void *unused, const struct roced_cqe *e) { return unused == NULL && e->token % 2 == 0; }

static void command(char what, struct roced_doorbell *bell)
{
	unsigned n;

	switch (what) {
	case 'S':
		post_send();
		return;
	case 'R':
		post_recv();
		return;
	case 'P':
		poll_one();
		return;
	case 'G':
	case 'A':
		if (scanf("%u", &n) != 1)
			exit(2);
		if (what == 'G')
			printf("%d\n", roced_ring(bell, n));
		else
			roced_cq_arm(&cq, n), puts("armed");
		return;
	case 'M':
		roced_cq_purge(&cq, even, NULL);
		puts("purged");
		return;
	case 'O':
		printf("%u %u %u %u %d %d\n", roced_send_outstanding(&send, send_polled), roced_send_waiting(&send),
			roced_recv_outstanding(&recv, recv_polled), roced_cq_count(&cq), roced_send_failed(&send),
				roced_cq_failed(&cq));
		return;
	}
	exit(2);
}

int main(int argc, char **argv)
{
	struct stat is;
	char what;
	int fd = argc == 5 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0 || fstat(fd, &is) != 0)
		return 2;
	uint8_t *memory = mmap(NULL, (size_t)is.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || !roced_send_open(&send, memory + atol(argv[2]),
		ROCED_SLOTS + ENTRIES * SEND_STRIDE, ENTRIES, SEND_STRIDE, false) ||
		!roced_recv_open(&recv, memory + atol(argv[3]), ROCED_SLOTS + ENTRIES * RECV_STRIDE, ENTRIES,
			RECV_STRIDE) ||
		!roced_cq_open(&cq, memory + atol(argv[4]), ROCED_SLOTS + ENTRIES * CQ_STRIDE, ENTRIES, CQ_STRIDE))
		return 2;
	if (roced_send_open(&(struct roced_send_queue){ 0 }, memory, ROCED_SLOTS + 7 * 64, 8, 64, false) ||
		roced_send_open(&(struct roced_send_queue){ 0 }, memory, 1 << 20, 6, 64, false))
		return 3; /* geometries that do not fit */
	recv_polled = recv.at.next; /* a queue in use would have been counted from its beginning */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (scanf(" %c", &what) == 1)
		command(what, (struct roced_doorbell *)memory);
	return 0;
}
