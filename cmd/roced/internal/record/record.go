// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"errors"
	"os"
	"sync"

	"github.com/roced/roced/internal/pcapng"
	"github.com/roced/roced/verbs/hca"
)

// Recorder writes the packets of cards to a pcapng file.
type Recorder struct {
	file    *os.File
	running sync.WaitGroup

	mu     sync.Mutex
	buffer *bufio.Writer
	writer *pcapng.Writer
	err    error // the first
}

// Create creates a file.
func Create(path string) (*Recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	r := &Recorder{file: file, buffer: bufio.NewWriterSize(file, 64<<10)}
	if r.writer, err = pcapng.NewWriter(r.buffer, "roced", "roced", 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

// Record writes the packets of a card until the card ends. The card does not wait: packets that are not
// written in time are lost, and the next packet has their number.
func (r *Recorder) Record(card *hca.Card) error {
	c, err := card.Capture(hca.CaptureFilter{})
	if err != nil {
		return err
	}
	r.running.Go(func() {
		for {
			select {
			case p := <-c.Packets():
				r.write(card.Name(), c, p)
			case <-c.Done():
				for len(c.Packets()) > 0 {
					r.write(card.Name(), c, <-c.Packets())
				}
				return
			}
		}
	})
	return nil
}

// write adds a packet. It flushes the file when no other packets are waiting.
func (r *Recorder) write(host string, c *hca.Capture, p hca.CapturedPacket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err = r.writer.Write(&pcapng.Packet{Time: p.Time, Out: p.Out, Frame: p.Frame, Length: p.Length, Comment: host + ": " + p.Verdict(), Lost: c.Lost()})
	if r.err == nil && len(c.Packets()) == 0 {
		r.err = r.buffer.Flush()
	}
}

// Close closes the file. All cards must have ended. It returns the first error of the recorder.
func (r *Recorder) Close() error {
	r.running.Wait()
	return errors.Join(r.err, r.buffer.Flush(), r.file.Close())
}
