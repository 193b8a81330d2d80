import { useQuery } from '@tanstack/react-query'
import { reloadOnFailure } from '../reload-on-failure.ts'
import { Waiting } from './feedback/waiting.tsx'
import classes from './qr-code.module.css'

/** Light modules around the code, required for scanning (ISO/IEC 18004: 4). */
const QUIET_ZONE = 4

/** Loaded with the first code: most visits show none. */
const loadQrCode = reloadOnFailure(() => import('qrcode'))

/** Always dark on white, in both colour schemes: phones do not read other colours reliably. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data: drawn } = useQuery({
    queryKey: ['qr', text],
    queryFn: () => draw(text),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  if (!drawn) return <Waiting />
  const { path, size } = drawn
  return (
    <svg className={classes.code} viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} data-testid="qr">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#111" />
    </svg>
  )
}

async function draw(text: string): Promise<{ path: string; size: number }> {
  const { create } = await loadQrCode()
  const { modules } = create(text, { errorCorrectionLevel: 'M' })
  let path = ''
  for (let row = 0; row < modules.size; row += 1) {
    for (let column = 0; column < modules.size; column += 1) {
      if (modules.get(row, column)) path += `M${column + QUIET_ZONE} ${row + QUIET_ZONE}h1v1h-1z`
    }
  }
  return { path, size: modules.size + 2 * QUIET_ZONE }
}
