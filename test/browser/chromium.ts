import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium, type LaunchOptions } from 'playwright-core'
import { START_WITHIN_MS } from '../deadlines.ts'

const HERE = import.meta.dirname
const ROOT_PACKAGE = new URL('../../package.json', import.meta.url)
const version: string = JSON.parse(readFileSync(ROOT_PACKAGE, 'utf8')).devDependencies['@sparticuz/chromium']

/** Without these options, Chromium starts a process that emulates a graphics card. */
const PLAIN = ['--disable-gpu', '--disable-software-rasterizer']

/** The usual paths of an installed Chrome. */
const INSTALLED = [
  '/usr/bin/google-chrome',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
]

/**
 * A real Chromium: the one that npm installs, else an installed Chrome.
 * @throws Error with the remedy
 */
export async function launchBrowser(): Promise<Browser> {
  const failures: string[] = []
  for (const find of [fromNpm, installed]) {
    try {
      const options = await find()
      if (options) return await chromium.launch({ ...options, args: PLAIN, timeout: START_WITHIN_MS })
    } catch (error) {
      failures.push((error as Error).message.split('\n')[0] ?? '')
    }
  }
  throw new Error(
    [
      'No Chromium could be started for the browser tests.',
      ...failures.map(failure => `  ${failure}`),
      'The one from npm (@sparticuz/chromium) runs on Linux x64 and arm64. Elsewhere install Google Chrome, or set',
      'CHROME_PATH to the program of a Chrome or Chromium.',
    ].join('\n'),
  )
}

/** Makes the package unpack the libraries that a slim machine lacks. */
const WITH_LIBRARIES = { AWS_LAMBDA_JS_RUNTIME: 'nodejs24.x' }
const UNPACK = "import chromium from '@sparticuz/chromium'; await chromium.executablePath()"

/**
 * The package unpacks itself into the temporary folder: each version and user get a folder of their own. Its font settings name
 * Amazon's folders. Ours name the font that it ships, and the machine's fonts.
 */
async function fromNpm(): Promise<LaunchOptions | null> {
  if (process.platform !== 'linux') return null
  const folder = join(tmpdir(), `pombal-browser-${version}-${process.getuid?.() ?? 'user'}`)
  if (!existsSync(folder)) await unpack(folder)
  const before = { ...process.env }
  Object.assign(process.env, { ...WITH_LIBRARIES, TMPDIR: folder, FONTCONFIG_PATH: folder })
  try {
    const { default: packaged } = await import('@sparticuz/chromium')
    const executablePath = await packaged.executablePath()
    const { TMPDIR: _, ...env } = process.env
    return { executablePath, env: env as Record<string, string> }
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
  }
}

/** The folder is complete or absent, even if several processes unpack it at the same time or one of them is killed. */
async function unpack(folder: string): Promise<void> {
  const fresh = await mkdtemp(`${folder}.`)
  try {
    const env = { ...process.env, ...WITH_LIBRARIES, TMPDIR: fresh }
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', UNPACK], { cwd: HERE, env })
    await writeFile(join(fresh, 'fonts.conf'), fontSettings(folder))
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    // Another process was faster.
    if (!existsSync(folder)) throw error
  }
}

function fontSettings(folder: string): string {
  return [
    '<?xml version="1.0"?>',
    '<!DOCTYPE fontconfig SYSTEM "fonts.dtd">',
    '<fontconfig>',
    `  <dir>${folder}/fonts</dir>`,
    '  <dir>/usr/share/fonts</dir>',
    `  <cachedir>${folder}/fonts-cache</cachedir>`,
    '</fontconfig>',
    '',
  ].join('\n')
}

async function installed(): Promise<LaunchOptions | null> {
  const executablePath = process.env['CHROME_PATH'] ?? INSTALLED.find(path => existsSync(path))
  return executablePath ? { executablePath } : null
}
