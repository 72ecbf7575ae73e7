import { render } from "preact";
import { App } from "./app";
import { Explorer } from "./explorer";

const explorer = new Explorer();
render(<App explorer={explorer} />, document.getElementById("app")!);
void explorer.start();
