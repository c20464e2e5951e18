// SPDX-License-Identifier: Apache-2.0

// Package errtest checks errors in tests: nil, or the expected error and text.
package errtest
