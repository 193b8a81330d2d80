import { copyFileSync, mkdirSync } from 'node:fs'

// tsc copies no pictures. n8n looks for them beside the compiled nodes and credentials.
for (const folder of ['credentials', 'nodes/Pombal']) {
  mkdirSync(`dist/${folder}`, { recursive: true })
  for (const icon of ['pombal.svg', 'pombal.dark.svg']) copyFileSync(`nodes/Pombal/${icon}`, `dist/${folder}/${icon}`)
}
