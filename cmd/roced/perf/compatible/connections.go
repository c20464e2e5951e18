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

// connections are the traffic of ib_send_bw, ib_write_lat and so on, -c RC or -c UC.
type connections struct {
	*perftestRun
	pairs *connection.Pairs
	next  int // whose keys are to be given
}

// Close closes the queue pairs, if there are some yet.
func (c *connections) Close() error {
	if c.pairs == nil {
		return nil
	}
	return c.pairs.Close()
}

// perftestBandwidthSize is what perftest's programs of bandwidth send over a connection, in bytes.
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

// prepare makes all queue pairs with the first.
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
		Type: o.Service(), Operation: o.Operation, Size: c.test.Size, Count: o.Pairs, Depth: o.Depth, Spin: !o.Waiting.Sleep, Timeout: o.Timeout,
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

// sees: the server's card takes WRITEs, reads and atomics by itself, and only for latency its program looks for WRITEs.
func (c *connections) sees() bool {
	return c.exchange.Client || c.options.Operation == connection.Send || c.options.SeesWrites()
}

// takeTurns is latency. The client begins, except with WRITEs, where perftest's server does.
func (c *connections) takeTurns(line *cli.Progress) error {
	operation := c.options.Operation
	begins := c.exchange.Client != (operation == connection.Write)
	times, err := c.pairs.Turns(c.Context(), begins, uint64(c.options.Trips), line)
	if err != nil {
		return c.explain(err)
	}
	c.report.Latency = append(c.report.Latency, report.NewLatencyResult(c.test.Size, 0, times))
	if operation == connection.Write {
		return nil // as perftest's, which part without a word
	}
	return c.finish()
}

// explain says what a silence may come from.
func (c *connections) explain(err error) error {
	if !errors.Is(err, unix.ETIMEDOUT) {
		return err
	}
	drops := c.device.DropsSince(c.before)
	changed, _ := c.changed()
	if card.Count(changed, "engine", "drop_path_mtu") > 0 {
		return fmt.Errorf("%w (%s): packets are longer than the path carries now, since an interface's MTU has fallen; connect again", err, drops)
	}
	return fmt.Errorf("%w (%s)%s; %s; was the peer (%s) given the same -n, -s and -q?", err, drops, ofLink(changed), card.Unanswered(min(c.test.Size, c.mtu.Bytes())), c.options.Peer())
}

// ofLink says that packets were lost on this side's way out, if some were.
func ofLink(changed []card.Counter) (text string) {
	if n := card.Count(changed, "engine", "drop_link_down"); n > 0 {
		text = fmt.Sprintf("; this side's link was down, and dropped %s packets", cli.Grouped(n))
	}
	if n := card.Count(changed, "engine", "drop_interface"); n > 0 {
		text += fmt.Sprintf("; this side's interface dropped %s packets: it has no carrier or no room, or at the other end of its link the MTU has fallen", cli.Grouped(n))
	}
	return text
}

// await is the server of reads and atomics, whose card answers by itself.
func (c *connections) await() error {
	if err := c.untilEnd(c.watchCard); err != nil {
		return err
	}
	return c.Handshake(func(io.ReadWriter) error { return c.exchange.End() })
}

// request is the client of bandwidth.
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

// receive is the server of SENDs. It takes what comes until the client says that it has sent all, and then the rest.
func (c *connections) receive(line *cli.Progress) error {
	take := traffic.Take(c.pairs.Receive).Shown(&c.pairs.Received, line)
	w := traffic.Watch{Take: take, Taken: &c.pairs.Received, Limit: c.options.Quiet}
	err := c.untilEnd(func(ctx context.Context) error { return c.explainQuiet(w.Until(ctx, c.test.Sleep)) })
	if err != nil {
		return err
	}
	// the client has not said how many it sent
	if err := traffic.Drain(c.Context(), w.Take, w.Taken, math.MaxUint64, w.Limit); err != nil {
		return err
	}
	if err := c.addReceived(c.test.Size, protocol.Outcome{Received: c.pairs.Received, Elapsed: c.pairs.Elapsed()}); err != nil {
		return err
	}
	return errors.Join(c.checkReceived(), c.Handshake(func(io.ReadWriter) error { return c.exchange.End() }))
}

// awaitResult is the server of bandwidth whose card does all by itself. Of messages of another size than it was given it
// reports nothing, and parts without a word, which is the one way to tell the client that perftest's protocol has.
func (c *connections) awaitResult() error {
	var told perftest.Result
	step := func() (err error) { told, err = c.exchange.AwaitResult(); return err }
	if err := c.until(step, c.watchCard); err != nil {
		return err
	}
	if told.Size != uint64(c.test.Size) {
		return fmt.Errorf("messages of %d bytes, not %d; give both sides the same -s and --op: %w", told.Size, c.test.Size, unix.EMSGSIZE)
	}
	if err := c.checkOperation(told); err != nil {
		return err
	}
	if err := c.addTold(told); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	return c.checkCount(told.Messages)
}

// checkReceived says how many SENDs are missing. That is a failure of a reliable connection alone: others may lose,
// and their client ends well too.
func (c *connections) checkReceived() error {
	missing := c.checkCount(c.pairs.Received)
	if missing == nil || c.options.RC || c.pairs.Received == 0 || c.pairs.Received > c.all() {
		return missing
	}
	_, err := fmt.Fprintf(c.options.ErrOut, "%v\n", missing)
	return err
}

// all is how many messages there are to be.
func (c *connections) all() uint64 { return uint64(c.options.Trips * c.options.Pairs) }

func (c *connections) checkCount(messages uint64) error {
	if messages == c.all() {
		return nil
	}
	return fmt.Errorf("%d messages came, not %d (%s); was the peer (%s) given the same -n, -q and --op?", messages, c.all(), c.device.DropsSince(c.before), c.options.Peer())
}

// over says what the connections are.
func (c *connections) over() *report.Over {
	o := c.options
	return &report.Over{Service: o.Service().String(), Operation: string(o.Operation), Pairs: o.Pairs, Depth: o.Depth, PathMTU: c.mtu.Bytes()}
}
