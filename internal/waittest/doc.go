// Package waittest is how tests wait: for a condition, and in calls that take a context. A limit ends a
// test that hangs, and no test is about time.
package waittest
