// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/job"
)

// testCase is one program, or a server and a client. In their command lines @ stands for the server's name or address by
// TCP, SERVER and CLIENT for addresses by RDMA, SERVER6 and CLIENT6 for such of IPv6,
// and GIDINDEX for the index of the side's GID of IPv4.
type testCase struct {
	server      string // its command line; empty: no server
	client      string
	want        string                                                 // a regular expression that must match the client's output
	ends        bool                                                   // the server goes on after the client, and is ended
	long        bool                                                   // not of -quick
	wire        bool                                                   // needs a network that TCP and RDMA are both on
	group       bool                                                   // the client sends to a group, and is started until the server, which may not have joined yet, has all
	memory      bool                                                   // needs a network that loses nothing: nothing sends again
	from        []string                                               // the packages that it needs beside basePackages; see byRelease
	check       func(n *network, said string) (note string, err error) // checks the client's output; nil: want does
	tcp         bool                                                   // both are programs of TCP, whose sockets librspreload makes rsockets
	alien       string                                                 // why it does not run where one end has Soft-RoCE; empty: it does
	alienServer string                                                 // why its server does not run with Soft-RoCE; empty: it does
	tries       int                                                    // how often both are started, if the client's connection may come before the server is ready for it; 0: once
}

// caseTime ends a case that hangs. The longest, of a disk, takes most of a minute, and more beside virtual machines.
const caseTime = 3 * time.Minute

// guestTime does where one end is a virtual machine. Without KVM its processor is emulated, and Soft-RoCE on it takes some
// 20,000 packets a second: 1.7 GB, as perftest's -a -n 100 sends, take more than a minute.
const guestTime = 5 * time.Minute

// caseTime is how long a case may take on the network.
func (n *network) caseTime() time.Duration {
	if n.bridge != nil {
		return guestTime
	}
	return caseTime
}

// attempts is how often a client is started, at most: its server may not listen yet.
const attempts = 30

// try runs a case, and returns the output of its programs.
func (b *bench) try(ctx context.Context, n *network, c testCase) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.caseTime())
	defer cancel()
	if c.server == "" {
		said, err := b.start(ctx, n.sides[1], c, n.fill(c.client)).Wait()
		if c.check != nil {
			return said, ctx.Err()
		}
		return said, c.judge(said, err)
	}
	for range max(c.tries, 1) {
		if said, err = b.tryPair(ctx, n, c); err == nil || !notListening.MatchString(said) {
			break
		}
	}
	return said, err
}

// tryPair runs a server and its client.
func (b *bench) tryPair(ctx context.Context, n *network, c testCase) (said string, err error) {
	serverContext, endServer := context.WithCancel(ctx)
	defer endServer()
	server := b.start(serverContext, n.sides[0], c, n.fill(c.server))
	clientSaid, clientErr := b.runClient(ctx, n, c, server)
	for c.group && clientErr == nil && !server.Ended() && ctx.Err() == nil {
		clientSaid, clientErr = b.runClient(ctx, n, c, server)
	}
	if c.ends || clientErr != nil {
		endServer()
	}
	serverSaid, serverErr := server.Wait()
	said = "server:\n" + serverSaid + "\nclient:\n" + clientSaid
	if err := c.judge(clientSaid, clientErr); err != nil {
		return said, fmt.Errorf("%w\n%s", err, said)
	}
	if serverErr != nil && !c.ends {
		return said, fmt.Errorf("server: %w\n%s", serverErr, said)
	}
	return said, nil
}

// fill replaces placeholders with names and addresses.
func (n *network) fill(line string) string {
	s, c := n.sides[0], n.sides[1]
	return strings.NewReplacer("@", s.name, "SERVER6", s.ip6, "CLIENT6", c.ip6, "SERVER", s.ip4, "CLIENT", c.ip4).Replace(line)
}

// runClient starts the client, again until it reaches its server. fio's ends without an error if its server does not listen
// yet.
func (b *bench) runClient(ctx context.Context, n *network, c testCase, server *job.Job) (said string, err error) {
	for attempt := range attempts {
		time.Sleep(time.Duration(min(attempt+4*min(c.tries, 1)+2, 10)) * 50 * time.Millisecond)
		said, err = b.start(ctx, n.sides[1], c, n.fill(c.client)).Wait()
		if c.judge(said, err) == nil || c.tries > 0 || server.Ended() || ctx.Err() != nil || !notListening.MatchString(said) {
			break
		}
	}
	return said, err
}

// notListening matches the client's error before its server listens. rstream's rpoll prints it for a non-blocking
// connection.
var notListening = regexp.MustCompile(`(?i)couldn.t connect|rpoll: resource temporarily unavailable|connection refused|could not connect|unable to connect|failed to connect|connect error|reject|unexpected cm event|event: .*, error: (1|8|28)`)

// judge returns an error for a wrong output.
func (c testCase) judge(said string, err error) error {
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if c.want != "" && !regexp.MustCompile(c.want).MatchString(said) {
		return fmt.Errorf("no %q in: %s", c.want, said)
	}
	return nil
}
