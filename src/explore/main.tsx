import { render } from "preact";

const root = document.querySelector("main");
if (root !== null) render(<p>Explorer</p>, root);
