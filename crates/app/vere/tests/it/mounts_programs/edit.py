"""Adds a line to a document in LibreOffice that listens on a pipe, saves in place, and ends LibreOffice."""

import sys
import time

import uno
from com.sun.star.beans import PropertyValue

pipe, path, line = sys.argv[1:]
local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext(
    "com.sun.star.bridge.UnoUrlResolver", local
)
for attempt in range(300):
    try:
        context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        break
    except Exception:  # LibreOffice does not listen yet.
        time.sleep(0.2)
desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
hidden = PropertyValue()
hidden.Name, hidden.Value = "Hidden", True
document = desktop.loadComponentFromURL("file://" + path, "_blank", 0, (hidden,))
text = document.Text
text.insertString(text.End, line, False)
document.store()
document.close(True)
desktop.terminate()
