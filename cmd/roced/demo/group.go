// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
)

// groupSize is the payload of a message to a group, in bytes.
const groupSize = 256

// groupDemo is the multicast part of the demo.
type groupDemo struct {
	*demo
	lab *switchLab
}

// inLab builds the lab, calls show, and removes the lab, even if show panics.
func (g *groupDemo) inLab(ctx context.Context, show func(context.Context) error) (err error) {
	if g.memory {
		g.lab, err = newMemorySwitch(ctx, g.log)
	} else {
		g.lab, err = newSwitchLab(ctx, g.log, g.modes.Options()...)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.lab.Close()) }()
	return show(ctx)
}

// show runs the groups and prints their table, even if a group failed.
func (g *groupDemo) show(ctx context.Context) error {
	if err := g.printStations(); err != nil {
		return err
	}
	runs := newGroupRuns(g.lab, groupSize, g.messages)
	for _, r := range runs {
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	err := g.printGroups(runs)
	for _, r := range runs {
		err = errors.Join(err, r.check())
	}
	if err != nil {
		return err
	}
	conclusion, err := g.conclusion(runs)
	if err == nil {
		_, err = fmt.Fprint(g.out, conclusion)
	}
	return err
}
