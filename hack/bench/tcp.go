// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
	"github.com/safchain/ethtool"
)

// tcpReceive reads a stream to its end.
func tcpReceive(j harness.Job) (r harness.Result, err error) {
	err = hca.RunIn(j.Namespace, func() error {
		conn, err := meetOver(j, true)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, conn)
		return errors.Join(err, conn.Close())
	})
	return r, err
}

// tcpSend writes a stream at the maximum rate. It counts parts of the length of a packet's payload.
func tcpSend(j harness.Job) (r harness.Result, err error) {
	err = hca.RunIn(j.Namespace, func() error {
		if err := segmentation(j.Variant == "tcp"); err != nil {
			return err
		}
		conn, err := meetOver(j, false)
		if err != nil {
			return err
		}
		if err := harness.Announce(harness.Endpoint{}); err != nil {
			return err
		}
		r, err = writeStream(conn, j)
		return errors.Join(err, conn.Close(), segmentation(true))
	})
	return r, err
}

func writeStream(conn net.Conn, j harness.Job) (harness.Result, error) {
	var m harness.Meter
	message := make([]byte, j.Size)
	for start := time.Now(); time.Since(start) < j.Duration; {
		if _, err := conn.Write(message); err != nil {
			return harness.Result{}, err
		}
		m.Add(j.Size / j.MTU)
	}
	return m.Result(), nil
}

// segmentation switches the segmentation offloads of the link on or off.
func segmentation(on bool) error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	return tool.Change(linkName, map[string]bool{"tx-tcp-segmentation": on, "tx-tcp6-segmentation": on, "tx-generic-segmentation": on})
}
