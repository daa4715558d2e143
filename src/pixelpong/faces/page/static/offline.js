// The offline page: its text is there already; curves and replays come from the data in it.
import { build, mount } from "./viewer.js";
import { AXES, mountCurves } from "./charts.js";
import { smallPlotly } from "./drawing.js";

const readData = (id) => JSON.parse(document.getElementById(id).textContent);

function showCurves() {
  window.Plotly = smallPlotly; // what charts.js draws with
  const curves = mountCurves(document.getElementById("curves"));
  const axis = build(
    "select", { id: "axis", onchange: () => curves.setAxis(axis.value) },
    Object.entries(AXES).map(([name, { title }]) => build("option", { value: name }, title)),
  );
  document.getElementById("axis-place").append(build("label", {}, "Over ", axis));
  curves.update([readData("curves-data")]);
}

function showReplays() {
  const place = document.getElementById("viewer"), chooser = document.getElementById("replay");
  let shown = null;
  const show = () => {
    shown?.unmount();
    shown = mount(place, readData(chooser.value));
  };
  chooser.addEventListener("change", show);
  show();
}

if (document.getElementById("curves-data")) showCurves();
if (document.getElementById("viewer")) showReplays();
