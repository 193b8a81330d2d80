/// <reference types="vite/client" />

/** A document of `docs/` as HTML (`panel/guides/plugin.ts`). */
declare module '*.md?guide' {
  export const html: string
}
