// Lists every npm package that the packed program and the image use, with versions, digests and licences, in
// `dist/sbom.cdx.json` (CycloneDX). It is made from the lock file, which the build used. `npm run build` runs it.
// Plain JavaScript, like the other build scripts.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Not `--omit=dev`: npm would also omit packages that a development tool needs besides the program. */
const OPTIONS = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application']

const [, , target = join(ROOT, 'dist/sbom.cdx.json')] = process.argv
const { name, version, description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
// npm is a Node script. On Windows, no program is named `npm`.
const npm = process.env.npm_execpath
const [command, script] =
  npm !== undefined && /\.c?js$/.test(npm) && existsSync(npm) ? [process.execPath, [npm]] : ['npm', []]
const output = execFileSync(command, [...script, 'sbom', ...OPTIONS], {
  cwd: ROOT,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
})
const sbom = JSON.parse(output)
// npm names the program after the folder.
const ref = `${name}@${version}`
const former = sbom.metadata.component['bom-ref']
sbom.metadata.component = {
  'bom-ref': ref,
  type: 'application',
  name,
  version,
  description,
  purl: `pkg:npm/${ref}`,
  // The program contains libsignal (docs/licences.md).
  licenses: [{ expression: 'MIT AND GPL-3.0-only' }],
}
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
const shipped = new Set(
  Object.entries(packages)
    .filter(([, { dev, link }]) => !dev && !link)
    .map(([path, locked]) => `${locked.name ?? path.replace(/^.*node_modules\//, '')}@${locked.version}`),
)
sbom.components = sbom.components.filter(({ name: of, version: exact }) => shipped.has(`${of}@${exact}`))
const kept = new Set([former, ...sbom.components.map(component => component['bom-ref'])])
sbom.dependencies = sbom.dependencies
  .filter(dependency => kept.has(dependency.ref))
  .map(dependency => ({
    ref: dependency.ref === former ? ref : dependency.ref,
    dependsOn: dependency.dependsOn.filter(other => kept.has(other)),
  }))
writeFileSync(target, `${JSON.stringify(sbom, null, 2)}\n`)
