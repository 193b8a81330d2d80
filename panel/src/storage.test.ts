import { expect, onTestFinished, test, vi } from 'vitest'
import { reloadOnFailure } from './reload-on-failure.ts'
import { readStored, store } from './storage.ts'

/** Lets every access to the storage throw, as Chromium does if the person blocks cookies. */
function blockStorage(): void {
  for (const area of ['localStorage', 'sessionStorage']) {
    vi.stubGlobal(area, undefined)
    Object.defineProperty(globalThis, area, {
      configurable: true,
      get: () => {
        throw new DOMException('Access is denied.', 'SecurityError')
      },
    })
  }
  onTestFinished(() => void vi.unstubAllGlobals())
}

test('if the browser blocks storage, nothing is remembered and nothing fails', () => {
  blockStorage()
  expect(store('localStorage', 'pombal.language', 'en')).toBe(false)
  expect(store('localStorage', 'pombal.language', null)).toBe(false)
  expect(readStored('localStorage', 'pombal.language')).toBeNull()
})

test('without storage a page whose script is missing is not reloaded for ever', async () => {
  blockStorage()
  vi.stubGlobal('fetch', async () => new Response())
  const missing = new Error('The script is missing.')
  await expect(reloadOnFailure(() => Promise.reject(missing))()).rejects.toBe(missing)
})
