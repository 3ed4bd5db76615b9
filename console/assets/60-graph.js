// The picture of a graph is scrolled to the node that it is about.
(() => {
  "use strict";
  const centre = () => {
    const node = document.querySelector("svg.graph [data-centre]"), pane = node?.closest(".graphscroll");
    if (!pane) return;
    const n = node.getBoundingClientRect(), p = pane.getBoundingClientRect();
    if (n.left < p.left || n.right > p.right) pane.scrollLeft += n.left + n.width / 2 - p.left - p.width / 2;
    if (n.top < p.top || n.bottom > p.bottom) pane.scrollTop += n.top + n.height / 2 - p.top - p.height / 2;
  };
  centre();
  document.addEventListener("settle:part", (e) => { if (e.detail.id === "graph") centre(); });
})();
