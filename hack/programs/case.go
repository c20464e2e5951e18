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

// testCase is a program, or a server and a client. Placeholders in their command lines: @ is the server's TCP name or
// address, SERVER and CLIENT are IPv4 addresses for RDMA, SERVER6 and CLIENT6 those for IPv6, and GIDINDEX is the index
// of the side's IPv4 GID.
type testCase struct {
	server      string // command line of the server, or empty without a server
	client      string
	want        string                                                 // regular expression that the client's output must match
	ends        bool                                                   // the server does not end itself, and is stopped after the client
	long        bool                                                   // not run by -quick
	wire        bool                                                   // requires a network for both TCP and RDMA
	group       bool                                                   // the client sends to a group, and is repeated until the server has joined and received all messages
	memory      bool                                                   // requires a lossless network, since the programs do not retransmit
	from        []string                                               // required packages in addition to basePackages, see byRelease
	check       func(n *network, said string) (note string, err error) // checks the client's output; if nil, want does
	tcp         bool                                                   // both are TCP programs, whose sockets librspreload replaces by rsockets
	alien       string                                                 // reason why the case does not run with Soft-RoCE at one end, or empty
	alienServer string                                                 // reason why the server does not run with Soft-RoCE, or empty
	tries       int                                                    // maximum attempts with both programs, if the client can connect before the server is ready; 0 means one
}

// caseTime is the time limit of a case. The longest case (iSCSI) takes almost a minute, and more on a busy machine.
const caseTime = 3 * time.Minute

// guestTime is the time limit of a case with a virtual machine at one end. Its processor is emulated, and Soft-RoCE
// receives about 20,000 packets per second: the 1.7 GB of perftest's -a -n 100 take more than a minute.
const guestTime = 5 * time.Minute

// caseTime returns the time limit of a case on the network.
func (n *network) caseTime() time.Duration {
	if n.bridge != nil {
		return guestTime
	}
	return caseTime
}

// attempts is the maximum number of starts of a client, whose server may not listen yet.
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

// runClient runs the client, and repeats it until it reaches its server. fio's client exits without an error if the
// server does not listen yet.
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

// notListening matches the error of a client before its server listens. The rpoll error is that of rstream with a
// non-blocking connection.
var notListening = regexp.MustCompile(`(?i)couldn.t connect|rpoll: resource temporarily unavailable|connection refused|could not connect|unable to connect|failed to connect|connect error|reject|unexpected cm event|event: .*, error: (1|8|28)`)

// judge returns an error if the client failed or its output does not match.
func (c testCase) judge(said string, err error) error {
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if c.want != "" && !regexp.MustCompile(c.want).MatchString(said) {
		return fmt.Errorf("no %q in: %s", c.want, said)
	}
	return nil
}
