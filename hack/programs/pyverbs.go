// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pyverbsResult is the result of a run of rdma-core's tests.
type pyverbsResult struct {
	ran, passed int
	failed      []string
	skipped     map[string]int // numbers of skipped tests by the reasons in skipReasons
}

// skipReason is a reason for skipped tests, and a pattern that matches it in their output.
type skipReason struct {
	says   *regexp.Regexp
	reason string
}

var skipReasons = []skipReason{
	{regexp.MustCompile(`(?i)MLX5|EFA device|PCI device|by root['"]`), "another vendor's device"},
	{regexp.MustCompile(`(?i)raw qp|root on Ethernet|flow|CAP_NET_RAW`), "raw packets and flow steering"},
	{regexp.MustCompile(`(?i)dmabuf|cuda|/dev/dri`), "a GPU"},
	{regexp.MustCompile(`(?i)net interface`), "an interface"},
	{regexp.MustCompile(`(?i)huge pages`), "huge pages"},
	{regexp.MustCompile(`(?i)import`), "import of another process's objects"},
	{regexp.MustCompile(`CC PD|CC_DMA_BOUNCE|DMA Handle|extended API|DM dmabuf|Buffer MR`), "memory of confidential guests, DMA handles"},
	{regexp.MustCompile(`additional access flags 258`), "RDMA flush"},
	{regexp.MustCompile(`(?i)ODP implicit|ODP is unavailable|No PHC|Extended CQ is not|Extended QP is not|timestamp`), "implicit ODP, tag matching, atomic write, clocks in ns"},
}

// mayFail contains tests that are allowed to fail, with the reason.
var mayFail = map[string]string{
	"test_resize_cq": "relies on completions that may not have arrived yet on a busy machine",
}

var (
	ranTests    = regexp.MustCompile(`(?m)^Ran (\d+) tests`)
	failedTest  = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (\S+)`)
	skippedTest = regexp.MustCompile(`skipped (['"].*['"])`)
)

// readPyverbs parses the output of the tests with -v.
func readPyverbs(said string) (r pyverbsResult, err error) {
	ran := ranTests.FindStringSubmatch(said)
	if ran == nil {
		return r, errors.New("the tests did not end")
	}
	r.ran, _ = strconv.Atoi(ran[1])
	for _, found := range failedTest.FindAllStringSubmatch(said, -1) {
		r.failed = append(r.failed, found[1])
	}
	r.skipped = map[string]int{}
	r.passed = r.ran - len(r.failed)
	for _, found := range skippedTest.FindAllStringSubmatch(said, -1) {
		r.skipped[reasonOf(found[1])]++
		r.passed--
	}
	return r, nil
}

func reasonOf(says string) string {
	for _, row := range skipReasons {
		if row.says.MatchString(says) {
			return row.reason
		}
	}
	return says
}

func (r *pyverbsResult) String() string {
	reasons := slices.SortedFunc(maps.Keys(r.skipped), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.skipped[b], r.skipped[a]), strings.Compare(a, b))
	})
	skipped := 0
	for i, reason := range reasons {
		skipped += r.skipped[reason]
		reasons[i] = fmt.Sprintf("%d %s", r.skipped[reason], reason)
	}
	return fmt.Sprintf("%d run, %d pass, %d fail, %d skipped (%s)", r.ran, r.passed, len(r.failed), skipped, strings.Join(reasons, "; "))
}

// judgePyverbs checks the output of the tests: the number of tests, the minimum number that are not skipped (more can
// run, for example on machines with huge pages), no failures except those of mayFail, and no unknown skip reasons.
func judgePyverbs(said string, ran, unskipped int) (note string, err error) {
	got, err := readPyverbs(said)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	if tried := got.passed + len(got.failed); got.ran != ran || tried < unskipped {
		err = fmt.Errorf("%d tests ran and %d did not skip; want %d, %d", got.ran, tried, ran, unskipped)
	}
	for _, name := range got.failed {
		if mayFail[name] == "" {
			err = errors.Join(err, fmt.Errorf("%s failed", name))
		}
	}
	for reason := range got.skipped {
		if !slices.ContainsFunc(skipReasons, func(row skipReason) bool { return row.reason == reason }) {
			err = errors.Join(err, fmt.Errorf("skipped because of %s", reason))
		}
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, said)
	}
	return got.String(), err
}
