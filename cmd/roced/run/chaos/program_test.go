// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"github.com/spf13/cobra"
)

// commonGroup is the group that all programs are members of.
var commonGroup = netip.MustParseAddr("239.77.0.1")

// order is a command of the test to a program, one per line.
type order struct {
	Do     string    // calm, round, wild or counters
	Round  uint32    // of a round
	To     []ud.Addr // destinations
	Count  int       // messages to each destination
	Expect int       // messages to receive
	Seed   uint64    // of wild
}

// answer is a program's output: one for each order, and faults at any time.
type answer struct {
	Done     bool            `json:",omitempty"`
	Fault    string          `json:",omitempty"`
	Addr     ud.Addr         `json:",omitzero"`
	Received int             `json:",omitempty"`
	Counters []verbs.Counter `json:",omitempty"`
}

// program is a process that uses the service.
type program struct {
	id     uint32
	socket string
	folder string // where programs leave their addresses

	session *session
	wild    sync.WaitGroup
	calm    chan struct{} // closed to end the random calls

	mu       sync.Mutex
	say      *json.Encoder
	received map[uint32]int // by round
	more     *sync.Cond     // signals arrived messages
}

func programCommand() *cobra.Command {
	p := &program{received: map[uint32]int{}, say: json.NewEncoder(os.Stdout)}
	p.more = sync.NewCond(&p.mu)
	cmd := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return p.run() }}
	cmd.Flags().Uint32Var(&p.id, "id", 0, "number")
	cmd.Flags().StringVar(&p.socket, "socket", "", "socket of the service")
	cmd.Flags().StringVar(&p.folder, "folder", "", "folder of the addresses")
	return cmd
}

// run executes commands until its input ends.
func (p *program) run() error {
	orders := bufio.NewScanner(os.Stdin)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return err
		}
		a, err := p.do(&o)
		if err != nil {
			p.fault(fmt.Errorf("%s: %w", o.Do, err))
		}
		a.Done = true
		p.write(a)
	}
	p.stopWild()
	if p.session == nil {
		return orders.Err()
	}
	return p.session.close()
}

func (p *program) do(o *order) (a answer, err error) {
	switch o.Do {
	case "calm":
		p.stopWild()
		if err = p.connect(); err == nil {
			err, a.Addr, a.Received = errors.Join(p.flush(), p.awaitPort(), p.awaitLength()), p.session.LocalAddr(), p.receivedOutside()
		}
	case "round":
		a.Received, err = p.round(o)
	case "wild":
		p.startWild(o.Seed)
	case "counters":
		a.Counters, err = p.session.verbs.Counters()
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	return a, err
}

func (p *program) write(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.say.Encode(a)
}

// fault reports a violation.
func (p *program) fault(err error) {
	p.write(answer{Fault: fmt.Sprintf("program %d, process %d: %v", p.id, os.Getpid(), err)})
}

// count counts a message.
func (p *program) count(round uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received[round]++
	p.more.Broadcast()
}

// receivedOutside returns the number of messages received outside of rounds.
func (p *program) receivedOutside() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received[0]
}

// connect opens a session if the last one has ended. It retries, because the service or the device may be restarting.
func (p *program) connect() error {
	if p.session != nil && p.session.client.Err() == nil {
		return nil
	}
	if p.session != nil {
		if err := p.session.close(); err != nil {
			return fmt.Errorf("close after the end: %w", err)
		}
		p.session = nil
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s, err := p.dial()
		if err == nil {
			p.session = s
			return p.publish()
		}
		if time.Now().After(end) {
			return fmt.Errorf("connect: %w", err)
		}
	}
}

// flush waits for the completion of random requests, some of which cannot be sent.
func (p *program) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.expected(p.session.Flush(ctx))
}

// awaitPort waits until the port is active: the service is notified of a change only after it was made.
func (p *program) awaitPort() error {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		port, err := p.session.verbs.QueryPort(1)
		if err != nil || port.State == verbs.PortActive {
			return p.expected(err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("the port is %v", port.State)
		}
	}
}

// awaitLength waits until messages of the size of rounds can be sent. The endpoint reads the MTU when it sends,
// once per second; this uses a message that is always too long, so that nothing is sent.
func (p *program) awaitLength() error {
	tooLong := []ud.Message{{To: p.session.LocalAddr(), Data: make([]byte, 2*roundLength)}}
	for end := time.Now().Add(patience); p.session.MaxMessage() < roundLength; time.Sleep(5 * time.Millisecond) {
		if _, err := p.session.SendBatch(context.Background(), tooLong); !errors.Is(err, ud.ErrTooLong) {
			return p.expected(err)
		}
		if _, err := p.session.verbs.QueryPort(1); err != nil { // the service has ended
			return p.expected(err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("messages are limited to %d bytes", p.session.MaxMessage())
		}
	}
	return nil
}

// publish writes this program's address to a file for the other programs.
func (p *program) publish() error {
	path := filepath.Join(p.folder, strconv.Itoa(int(p.id)))
	text, err := p.session.LocalAddr().MarshalText()
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// roundLength exceeds the length of every message of a round.
const roundLength = 1024

// round sends, and waits until it has received the expected messages.
func (p *program) round(o *order) (received int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, to := range o.To {
		length := headLength + (int(o.Round)*131+i*17)%(roundLength-headLength)
		if err := p.session.send(ctx, to, o.Round, o.Count, length); err != nil {
			return 0, err
		}
	}
	if err := p.session.Flush(ctx); err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, p.more.Broadcast)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.received[o.Round] < o.Expect && ctx.Err() == nil {
		p.more.Wait()
	}
	return p.received[o.Round], nil
}
