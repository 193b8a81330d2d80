import type { Page } from 'playwright-core'
import type { Role } from '../../src/domain/access.ts'
import type { PanelHarness } from './harness.ts'

/** Creates an account. @returns the path of the invitation, with its secret */
export async function invite({ url, service }: PanelHarness, name: string, role: Role): Promise<string> {
  const response = await fetch(`${url}/admin/v1/accounts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, role }),
  })
  const { data } = (await response.json()) as { data: { url: string } }
  const { pathname, hash } = new URL(data.url, url)
  return pathname + hash
}

/** Opens a page, signed in with a new account. */
export async function openAs(harness: PanelHarness, name: string, role: Role, password: string): Promise<Page> {
  const page = await harness.open(await invite(harness, name, role))
  await page.locator('input[type="password"]').fill(password)
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.waitForURL(address => address.pathname === '/')
  return page
}
