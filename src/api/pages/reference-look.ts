/** The reference in the colours of the panel (`panel/src/global.css`), below a bar with a link back to the panel. */
export const REFERENCE_CSS = `
:root { --scalar-custom-header-height: 46px; }
.pombal-bar {
  position: sticky; top: 0; z-index: 1000; box-sizing: border-box; height: 46px; padding: 0 24px;
  display: flex; align-items: center; gap: 18px; font: 600 15px/1 system-ui, sans-serif;
  background: var(--scalar-background-2); border-bottom: 1px solid var(--scalar-border-color);
}
.pombal-bar a { color: var(--scalar-color-1); text-decoration: none; padding: 8px 0; }
.pombal-bar a:hover, .pombal-bar a:focus-visible { text-decoration: underline; }
.light-mode {
  --scalar-background-1: #ffffff; --scalar-background-2: #f8f6f2; --scalar-background-3: #f2efe9;
  --scalar-color-1: #20262c; --scalar-color-2: #4a5159; --scalar-color-3: #5f666e; --scalar-color-accent: #a34a30;
  --scalar-border-color: #e4dfd6; --scalar-color-green: #24713f; --scalar-color-red: #b02f26;
  --scalar-color-yellow: #8a5a08; --scalar-color-blue: #335a73; --scalar-color-orange: #a34a30; --scalar-color-purple: #5d4a80;
  --scalar-sidebar-background-1: #f8f6f2; --scalar-sidebar-color-1: #20262c; --scalar-sidebar-color-2: #4a5159;
  --scalar-sidebar-border-color: #e4dfd6; --scalar-sidebar-item-hover-background: #f2efe9;
  --scalar-sidebar-item-active-background: #e3ecf2; --scalar-sidebar-color-active: #335a73;
}
.dark-mode {
  --scalar-background-1: #1a1f24; --scalar-background-2: #12161a; --scalar-background-3: #262d34;
  --scalar-color-1: #e9e7e2; --scalar-color-2: #c3c5c4; --scalar-color-3: #9ca5ad; --scalar-color-accent: #e08a6c;
  --scalar-border-color: #2b333a; --scalar-color-green: #6cc98a; --scalar-color-red: #f08a80;
  --scalar-color-yellow: #e5b45a; --scalar-color-blue: #93b8cf; --scalar-color-orange: #e08a6c; --scalar-color-purple: #b9a5e0;
  --scalar-sidebar-background-1: #12161a; --scalar-sidebar-color-1: #e9e7e2; --scalar-sidebar-color-2: #c3c5c4;
  --scalar-sidebar-border-color: #2b333a; --scalar-sidebar-item-hover-background: #1a1f24;
  --scalar-sidebar-item-active-background: #1c2d38; --scalar-sidebar-color-active: #93b8cf;
}`

/** Its script gives the copy buttons of the examples an accessible name, which they lack. */
export const REFERENCE_BAR = `<header class="pombal-bar"><a href="/">← Pombal</a><a href="/openapi.json">openapi.json</a></header>
<script>
  new MutationObserver(() => {
    for (const button of document.querySelectorAll('.scalar-code-copy:not([aria-label])')) button.setAttribute('aria-label', 'Copy')
  }).observe(document.documentElement, { childList: true, subtree: true })
</script>`
