// Plain JavaScript, because `npm ci --omit=dev` runs it too: without the build tools, and possibly on an older Node.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
if (existsSync(`${root}/node_modules/vite`)) {
  const { build } = await import('vite')
  await build({ configFile: `${root}/panel/vite.config.ts`, logLevel: 'warn' })
} else {
  console.log('The panel was not built because its build tools are not installed. The service runs without it.')
}
