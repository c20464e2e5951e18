// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// report prints a line per case, and counts the results.
type report struct{ passed, failed int }

func (r *report) line(name string, err error) {
	if err == nil {
		r.passed++
		fmt.Printf("ok    %s\n", name)
		return
	}
	r.failed++
	fmt.Printf("FAIL  %s\n        %s\n", name, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n        "))
}

func (r *report) end() error {
	if r.passed+r.failed == 0 {
		return errors.New("no case ran; -list shows their names")
	}
	fmt.Printf("\n%d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 {
		return fmt.Errorf("%d cases failed", r.failed)
	}
	return nil
}
