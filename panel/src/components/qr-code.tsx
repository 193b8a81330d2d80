import { create } from 'qrcode'
import { useMemo } from 'react'
import classes from './qr-code.module.css'

/** Light modules around the code, required for scanning (ISO/IEC 18004: 4). */
const QUIET_ZONE = 4

/** Always dark on white, in both colour schemes: phones do not read other colours reliably. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = useMemo(() => draw(text), [text])
  return (
    <svg className={classes.code} viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} data-testid="qr">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#111" />
    </svg>
  )
}

function draw(text: string): { path: string; size: number } {
  const { modules } = create(text, { errorCorrectionLevel: 'M' })
  let path = ''
  for (let row = 0; row < modules.size; row += 1) {
    for (let column = 0; column < modules.size; column += 1) {
      if (modules.get(row, column)) path += `M${column + QUIET_ZONE} ${row + QUIET_ZONE}h1v1h-1z`
    }
  }
  return { path, size: modules.size + 2 * QUIET_ZONE }
}
