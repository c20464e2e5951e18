// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"

	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// Recorded is a frame and the time when it was captured.
type Recorded struct {
	Frame
	Time time.Time
}

// Recorder records the frames of a link.
type Recorder struct {
	socket   *Socket
	stopping atomic.Bool
	done     chan struct{}
	frames   []Recorded // valid after done is closed
	err      error
}

// Record records the frames of a link from now on.
func Record(ns *lab.Namespace, link string) (*Recorder, error) {
	socket, err := Open(ns, link)
	if err != nil {
		return nil, err
	}
	r := &Recorder{socket: socket, done: make(chan struct{})}
	go r.run()
	return r, nil
}

func (r *Recorder) run() {
	defer close(r.done)
	for {
		last := r.stopping.Load()
		err := r.drain()
		if err == nil && !last {
			err = r.socket.wait()
		}
		if err != nil && r.err == nil {
			r.err = err
		}
		if last || err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}

func (r *Recorder) drain() error {
	for frame, err := range r.socket.Frames() {
		if err != nil {
			return err
		}
		frame.Data = bytes.Clone(frame.Data)
		r.frames = append(r.frames, Recorded{frame, time.Now()})
	}
	return nil
}

// Stop ends the recording and returns the frames captured before. The error is ENOBUFS if frames were lost; the frames
// after those are recorded.
func (r *Recorder) Stop() ([]Recorded, error) {
	r.stopping.Store(true)
	<-r.done
	return r.frames, errors.Join(r.err, r.socket.Close())
}
