// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"golang.org/x/sys/unix"
)

// connections implements the traffic of ib_send_bw, ib_write_lat and so on, with -c RC or -c UC.
type connections struct {
	*perftestRun
	pairs *connection.Pairs
	next  int // index of the next keys to send
}

// Close closes the queue pairs that were created.
func (c *connections) Close() error {
	if c.pairs == nil {
		return nil
	}
	return c.pairs.Close()
}

// perftestBandwidthSize is the default message size of perftest's bandwidth programs over a connection, in bytes.
const perftestBandwidthSize = 65536

func (c *connections) size() (int, error) {
	switch {
	case c.options.Operation.IsAtomic():
		return connection.AtomicSize, nil
	case c.options.OwnSizes:
		return c.options.Sizes[0], nil
	case c.test.Kind == protocol.Latency:
		return perftestLatencySize, nil
	}
	return perftestBandwidthSize, nil
}

// prepare returns the keys of the next queue pair. The first call creates all queue pairs.
func (c *connections) prepare(peer *perftest.Keys) (own perftest.Keys, err error) {
	if c.pairs == nil {
		if err := c.open(peer); err != nil {
			return own, err
		}
	}
	c.next++
	return c.pairs.Keys(c.next - 1), nil
}

func (c *connections) open(peer *perftest.Keys) error {
	source, err := c.chooseGID(peer)
	if err != nil {
		return err
	}
	o := c.options
	c.pairs, err = connection.Open(c.device, source, connection.Options{
		Type: o.Service(), Operation: o.Operation, Size: c.test.Size, Count: o.Pairs, Depth: o.Depth, Spin: !o.Waiting.Sleep, Timeout: o.Timeout, Ack: o.AckTimeout,
	})
	return err
}

func (c *connections) aim() error { return c.pairs.Connect(c.exchange.Peer, c.mtu) }

func (c *connections) measure(line *cli.Progress) error {
	c.report.Over = c.over()
	latency := c.test.Kind == protocol.Latency
	switch {
	case latency && c.sees():
		return c.takeTurns(line)
	case latency:
		return c.await()
	case c.exchange.Client:
		return c.request(line)
	case c.sees():
		return c.receive(line)
	}
	return c.awaitResult()
}

// sees reports whether the program takes part. The server's card handles WRITEs, reads and atomics without its program,
// except that the program polls for WRITEs in a latency test.
func (c *connections) sees() bool {
	return c.exchange.Client || c.options.Operation == connection.Send || c.options.SeesWrites()
}

// takeTurns measures latency. The client begins, except with WRITEs: there perftest's server begins.
func (c *connections) takeTurns(line *cli.Progress) error {
	operation := c.options.Operation
	begins := c.exchange.Client != (operation == connection.Write)
	times, err := c.pairs.Turns(c.Context(), begins, uint64(c.options.Trips), line)
	if err != nil {
		return c.explain(err)
	}
	c.report.Latency = append(c.report.Latency, report.NewLatencyResult(c.test.Size, 0, times))
	if operation == connection.Write {
		return nil // as in perftest, which exchanges no message at the end
	}
	return c.finish()
}

// explain adds the likely causes of a timeout.
func (c *connections) explain(err error) error {
	if !errors.Is(err, unix.ETIMEDOUT) {
		return err
	}
	drops := c.device.DropsSince(c.before)
	changed, _ := c.changed()
	if card.Count(changed, "engine", "drop_path_mtu") > 0 {
		return fmt.Errorf("%w (%s): packets exceed the path MTU, since an interface's MTU was reduced; reconnect", err, drops)
	}
	return fmt.Errorf("%w (%s)%s; %s; check that the peer (%s) uses the same -n, -s and -q", err, drops, ofLink(changed), card.Unanswered(min(c.test.Size, c.mtu.Bytes())), c.options.Peer())
}

// ofLink describes packets that were lost on this side's own link, if any.
func ofLink(changed []card.Counter) (text string) {
	if n := card.Count(changed, "engine", "drop_link_down"); n > 0 {
		text = fmt.Sprintf("; this side's link was down, and dropped %s packets", cli.Grouped(n))
	}
	if n := card.Count(changed, "engine", "drop_interface"); n > 0 {
		text += fmt.Sprintf("; this side's interface dropped %s packets: no carrier, a full queue, or a reduced MTU at the other end of its link", cli.Grouped(n))
	}
	return text
}

// await implements the server of latency tests with reads and atomics. Its card responds without the program.
func (c *connections) await() error {
	if err := c.untilEnd(c.watchCard); err != nil {
		return err
	}
	return c.Handshake(func(io.ReadWriter) error { return c.exchange.End() })
}

// request implements the client of bandwidth tests.
func (c *connections) request(line *cli.Progress) error {
	elapsed, err := c.pairs.Request(c.Context(), uint64(c.options.Trips), line)
	if err != nil {
		return c.explain(err)
	}
	b, err := c.addRequested(elapsed)
	if err != nil {
		return err
	}
	return c.Handshake(func(io.ReadWriter) error {
		if c.exchange.Reports {
			if err := c.exchange.TellResult(perftest.NewResult(b.Size, *b.Sent, *b.SentPerSecond)); err != nil {
				return err
			}
		}
		return c.exchange.End()
	})
}

// receive implements the server of bandwidth tests with SENDs. It receives until the client reports that it has sent
// all messages, and then drains the rest.
func (c *connections) receive(line *cli.Progress) error {
	take := traffic.Take(c.pairs.Receive).Shown(&c.pairs.Received, line)
	w := traffic.Watch{Take: take, Taken: &c.pairs.Received, Limit: c.options.Quiet}
	err := c.untilEnd(func(ctx context.Context) error { return c.explainQuiet(w.Until(ctx, c.test.Sleep)) })
	if err != nil {
		return err
	}
	// the client does not report the number of messages
	if err := traffic.Drain(c.Context(), w.Take, w.Taken, math.MaxUint64, w.Limit); err != nil {
		return err
	}
	if err := c.addReceived(c.test.Size, protocol.Outcome{Received: c.pairs.Received, Elapsed: c.pairs.Elapsed()}); err != nil {
		return err
	}
	return errors.Join(c.checkReceived(), c.Handshake(func(io.ReadWriter) error { return c.exchange.End() }))
}

// awaitResult implements the server of bandwidth tests in which only the card takes part. If the messages had another
// size, it reports nothing and closes the connection: perftest's protocol has no other way to notify the client.
func (c *connections) awaitResult() error {
	var result perftest.Result
	step := func() (err error) { result, err = c.exchange.AwaitResult(); return err }
	if err := c.until(step, c.watchCard); err != nil {
		return err
	}
	if result.Size != uint64(c.test.Size) {
		return fmt.Errorf("messages have %d bytes, want %d; use the same -s and --op on both sides: %w", result.Size, c.test.Size, unix.EMSGSIZE)
	}
	if err := c.checkOperation(result); err != nil {
		return err
	}
	if err := c.addClientResult(result); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	return c.checkCount(result.Messages)
}

// checkReceived reports missing SENDs. They are an error with a reliable connection only: others may lose messages, and
// their client succeeds too.
func (c *connections) checkReceived() error {
	missing := c.checkCount(c.pairs.Received)
	if missing == nil || c.options.RC || c.pairs.Received == 0 || c.pairs.Received > c.all() {
		return missing
	}
	_, err := fmt.Fprintf(c.options.ErrOut, "%v\n", missing)
	return err
}

// all returns the expected number of messages.
func (c *connections) all() uint64 { return uint64(c.options.Trips * c.options.Pairs) }

func (c *connections) checkCount(messages uint64) error {
	if messages == c.all() {
		return nil
	}
	return fmt.Errorf("received %d messages, want %d (%s); check that the peer (%s) uses the same -n, -q and --op", messages, c.all(), c.device.DropsSince(c.before), c.options.Peer())
}

// over describes the connections.
func (c *connections) over() *report.Over {
	o := c.options
	return &report.Over{Service: o.Service().String(), Operation: string(o.Operation), Pairs: o.Pairs, Depth: o.Depth, PathMTU: c.mtu.Bytes()}
}
