package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// A run is requested, followed to its end, and folded again from its first event.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startRefold(ctx) // `refold dev` in another terminal does the same
	defer stop()

	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// What is said about the run comes after what was said last.
	from, err := c.LastNotice(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// From here on nothing can lose the run, and the program may end.
	seq, err := c.Run(ctx, "hello", "What is here?", client.RunOptions{})
	if err != nil {
		log.Fatal(err)
	}
	end, err := c.End(ctx, "hello", seq, from+1, func(n client.Notice) { fmt.Println(n.N, n.Type) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Lifecycle, end.Output.Text)

	replayed, err := c.Replay(ctx, "hello", 0, nil)
	if err != nil {
		log.Fatal(err)
	}
	view, err := c.View(ctx, "hello")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(replayed.Events, "events, identical:", replayed.Identical(), "the same state:", replayed.Hash.String() == view.Hash)

	// Output:
	// 1 SessionOpened
	// 2 RunStarted
	// 3 RunFinished
	// completed You said: What is here?
	// 2 events, identical: true the same state: true
}

// Events are read as they arrive, and folded one after another.
func ExampleClient_Folder() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startRefold(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Run(ctx, "hello", "What is here?", client.RunOptions{}); err != nil {
		log.Fatal(err)
	}

	fold := c.Folder("hello")
	for e, err := range c.Events(ctx, "hello", 1) {
		if err != nil {
			log.Fatal(err)
		}
		_, state, err := fold(ctx, e)
		if err != nil {
			log.Fatal(err)
		}
		view := state.View()
		fmt.Println("event", view.Count, "through", e.Door, "leaves it waiting for", view.WaitsFor)
		if view.Lifecycle == session.Completed {
			break
		}
	}

	// Output:
	// event 1 through in leaves it waiting for model
	// event 2 through llm leaves it waiting for nobody
}

// A model is shown files: images, documents, text.
func ExampleClient_Run_files() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startRefold(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	from, err := c.LastNotice(ctx)
	if err != nil {
		log.Fatal(err)
	}

	photo, err := client.ReadFile("../internal/media/testdata/dot.png")
	if err != nil {
		log.Fatal(err)
	}
	notes := client.File{Name: "notes.txt", Data: []byte("It is black and white.\n")}
	seq, err := c.Run(ctx, "hello", "Which colours?", client.RunOptions{Files: []client.File{photo, notes}})
	if err != nil {
		log.Fatal(err)
	}
	end, err := c.End(ctx, "hello", seq, from+1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Output.Text) // the built-in model repeats the text of what it is shown

	// Output:
	// You said: Which colours?
	// [dot.png, image/png, 91 bytes, sha256-766b5499044500af4f8a98a6b75f2b09adb8900788d162cc4b9fa54a8b48384c]
	// <document path="notes.txt">
	// It is black and white.
	// </document>
}
