// Command client counts a visit and reads its app's pages, with the client code that oapi-codegen generates from /openapi.json.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if err := call(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func call(ctx context.Context, address string) error {
	client, err := NewClientWithResponses(address)
	if err != nil {
		return err
	}
	uri := "http://hhui.top/home"
	visited, err := client.VisitWithResponse(ctx, &VisitParams{App: "demo", Uri: &uri})
	if err != nil {
		return err
	}
	if visited.JSON200 == nil {
		return fmt.Errorf("visit: %s: %s", visited.Status(), visited.Body)
	}
	page := visited.JSON200.Page
	fmt.Println("visit:", page.Rank, page.Uv, page.Pv, page.Hot)
	order := PagesParamsOrderHot
	pages, err := client.PagesWithResponse(ctx, "demo", &PagesParams{Order: &order})
	if err != nil {
		return err
	}
	if pages.JSON200 == nil {
		return fmt.Errorf("pages: %s: %s", pages.Status(), pages.Body)
	}
	for _, p := range pages.JSON200.Pages {
		fmt.Println("page:", p.Uri, *p.Hot)
	}
	refused, err := client.VisitWithResponse(ctx, &VisitParams{App: "none", Uri: &uri})
	if err != nil {
		return err
	}
	if refused.JSON404 == nil {
		return fmt.Errorf("visit to an app that does not exist: %s: %s", refused.Status(), refused.Body)
	}
	fmt.Println("refused:", refused.JSON404.Error)
	return nil
}
