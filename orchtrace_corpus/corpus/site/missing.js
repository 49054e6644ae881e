
// The page of what is not found is shown at any address of the site, so its relative links get that of the start page.
"use strict";
{
  const start = location.origin + location.pathname.replace(/[^/]*$/, "").replace(/\/(papers|claims|gaps|figures)\/$/, "/");
  for (const linked of document.querySelectorAll("[href]")) {
    const address = linked.getAttribute("href");
    if (!/^([a-z]+:|#)/i.test(address)) linked.setAttribute("href", start + address);
  }
}
