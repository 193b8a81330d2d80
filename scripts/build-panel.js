// Plain JavaScript that any Node can read: `npm ci --omit=dev` runs it too, without the tools and perhaps on an older Node.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
if (existsSync(`${root}/node_modules/vite`)) {
  const { build } = await import('vite')
  await build({ configFile: `${root}/panel/vite.config.ts`, logLevel: 'warn' })
} else {
  console.log('The panel is not built: its tools are not installed. The service runs without it.')
}
