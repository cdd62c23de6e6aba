// Loads plotly once, after the first paint: it is large, and everything but figures can be read without it.

let loading = null;

export function withFigures() {
  if (!loading) {
    loading = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = "/plotly.js";
      script.onload = () => { redrawFigures(true); resolve(); };
      script.onerror = () => { loading = null; reject(new Error("The figures could not be loaded.")); };
      document.head.appendChild(script);
    });
  }
  return loading;
}

export function afterFirstPaint(act) {
  requestAnimationFrame(() => setTimeout(act, 50));
}

// Takes the figures inside an element away, and frees what plotly holds of them.
export function clearFigures(parent) {
  if (typeof Plotly === "undefined") return;
  for (const figure of parent.querySelectorAll("figure")) removeFigure(figure);
}
