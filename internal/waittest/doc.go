// Package waittest is how tests wait: for a condition, in calls that take a context, and for what happens seldom. A limit
// ends a test that hangs, and no test is about time.
package waittest
