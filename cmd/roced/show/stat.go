// SPDX-License-Identifier: Apache-2.0

package show

import (
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
)

type statRow struct {
	Device string `json:"ifname"`
	Place  string `json:"place"`
	Name   string `json:"name"`
	Value  uint64 `json:"value"`
	Lost   bool   `json:"lost"`
}

func (r *statRow) cells() []string {
	mark := ""
	if r.Lost && r.Value > 0 {
		mark = "lost"
	}
	return []string{r.Device, r.Place, r.Name, cli.Grouped(r.Value), mark}
}

// statRows returns the counters. In text, zeros are omitted unless --all is given.
func statRows(c *daemon.Connection, o *listOptions) (rows []row, err error) {
	names, err := c.Choose(o.Device)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		counters, err := c.Counters(name)
		if err != nil {
			return nil, err
		}
		for _, v := range counters {
			if v.Value != 0 || o.all || o.json {
				rows = append(rows, &statRow{name, v.Place, v.Name, v.Value, v.Lost})
			}
		}
	}
	return rows, nil
}
