package main

// R38: the observer is told, and the trail tells it again from where its reader stopped.
func Example() {
	main()
	// Output:
	// level=INFO msg="question open" tool=deploy interaction=01a22c538200aba384368d8c scope=ann questions=[tool_permission] until=12:10
	// note: a question of deploy waits for ann until 12:10
	// level=INFO msg=answered tool=deploy interaction=01a22c538200aba384368d8c by=ann@example.com face="" after=3m0s
	// level=INFO msg=finished tool=deploy interaction=01a22c538200aba384368d8c code="" took=0s
	// deploy: <nil>
	// trail: 1. at 12:00 deploy was asked
	// trail: 2. at 12:03 deploy was answered
	// trail: 3. at 12:03 deploy was claimed
	// trail: 4. at 12:03 deploy was ended
	// level=INFO msg="question open" tool=deploy interaction=01a22c5641208542dcb8a994 scope=ann questions=[tool_permission] until=12:13
	// note: a question of deploy waits for ann until 12:13
	// level=WARN msg=expired tool=deploy interaction=01a22c5641208542dcb8a994 was=open
	// deploy: expired: the time to answer is over: look the work up under the application's own key
	// trail: 5. at 12:03 deploy was asked
	// trail: 6. at 12:13 deploy was expired
}
